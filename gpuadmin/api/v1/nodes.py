"""Nodes with their resources, cards and agent. The numbers are `planning.counting.account`'s."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gpuadmin.api.paging import Pages
from gpuadmin.api.v1.common import CLUSTER, NAMED_LIST, cluster_of, missing, number, text, time
from gpuadmin.fleet.models import AgentState, Node
from gpuadmin.fleet.snapshot import one_snapshot
from gpuadmin.planning.facts import Use
from gpuadmin.workloads.facts import NodeRecord, records


class TaintOut(serializers.Serializer[Any]):
    key = serializers.CharField()
    value = text(default=None)
    effect = serializers.CharField()
    time_added = text(source="timeAdded", default=None)


class ResourceOut(serializers.Serializer[Any]):
    """One resource name in its own unit. ``physical`` is NVML's, the others are Kubernetes'."""

    name = serializers.CharField()
    unit = serializers.ChoiceField(["card", "slice", "slot", "other"])
    physical = number()
    capacity = number()
    allocatable = number()
    requested = number()
    free = number()
    free_now = number()
    over_committed = number()
    unavailable = number()
    why_unavailable = serializers.CharField(source="why")
    note = text()


class ResourcesOut(serializers.Serializer[Any]):
    source = serializers.ChoiceField(["kubernetes"])  # type: ignore[assignment]
    observed_at = time()
    physical_source = serializers.ChoiceField(["agent"])
    physical_observed_at = time()
    items = ResourceOut(many=True)


class CardsOut(serializers.Serializer[Any]):
    """Each card is in exactly one of the parts after ``allocated``; they add up to ``owned``.

    Where no agent ever told, nobody knows what is ``working``, ``busy``, ``quiet`` or ``idle``.
    """

    source = serializers.ChoiceField(["agent", "kubernetes"])  # type: ignore[assignment]
    observed_at = time()
    owned = serializers.IntegerField()
    working = number()
    allocated = number()
    busy = number()
    quiet = number()
    idle = number()
    unmeasured = serializers.IntegerField()
    failed = serializers.IntegerField()
    free = serializers.IntegerField()
    blocked = serializers.IntegerField()
    unknown = serializers.IntegerField()


class AgentOut(serializers.Serializer[AgentState]):
    """What came of asking the node's agent; every field is null before the first try."""

    status = serializers.ChoiceField(AgentState.Status.values, allow_null=True)
    reason = text()
    asked_at = time()
    reported_at = time()
    version = text()
    driver_version = text()
    cuda_version = text()
    clock_skew_seconds = serializers.FloatField(allow_null=True)


class NodeOut(serializers.Serializer[NodeRecord]):
    """One node. ``closed`` says why no GPU pod can come now; "" when one can."""

    uid = serializers.CharField(source="node.uid")
    name = serializers.CharField(source="node.name")
    is_gpu_node = serializers.BooleanField(source="node.is_gpu_node")
    ready = serializers.BooleanField(source="node.ready", allow_null=True)
    ready_reason = serializers.CharField(source="node.ready_reason")
    ready_since = time(source="node.ready_since")
    unschedulable = serializers.BooleanField(source="node.unschedulable")
    closed = serializers.CharField(source="account.closed")
    taints = TaintOut(source="node.taints", many=True)
    labels = serializers.DictField(source="node.labels", child=serializers.CharField())
    source = serializers.SerializerMethodField()  # type: ignore[assignment]
    observed_at = serializers.DateTimeField(source="node.observed_at")
    resources = serializers.SerializerMethodField()
    cards = serializers.SerializerMethodField()
    agent = serializers.SerializerMethodField()

    def get_source(self, record: NodeRecord) -> str:
        return "kubernetes"

    def get_resources(self, record: NodeRecord) -> ResourcesOut:
        return ResourcesOut(
            {
                "source": "kubernetes",
                "observed_at": record.node.observed_at,
                "physical_source": "agent",
                "physical_observed_at": record.agent.reported_at if record.agent else None,
                "items": record.account.rows,
            }
        ).data  # type: ignore[return-value]

    def get_cards(self, record: NodeRecord) -> CardsOut:
        account, reported = record.account, record.agent.reported_at if record.agent else None
        counts: dict[str, int | None] = {use.value: account.uses[use] for use in Use}
        counts["working"] = account.working
        if not reported:
            counts |= dict.fromkeys(("working", Use.BUSY, Use.QUIET, Use.IDLE))
        return CardsOut(
            {
                "source": "agent" if reported else "kubernetes",
                "observed_at": reported or record.node.observed_at,
                "owned": account.owned,
                "allocated": account.allocated,
                **counts,
            }
        ).data  # type: ignore[return-value]

    def get_agent(self, record: NodeRecord) -> AgentOut:
        if record.agent is None:
            return dict.fromkeys(AgentOut().fields)  # type: ignore[return-value]
        return AgentOut(record.agent).data  # type: ignore[return-value]


class Nodes(APIView):
    """Present nodes, by name."""

    pagination_class = Pages

    @extend_schema(operation_id="nodes_list", parameters=NAMED_LIST, responses=NodeOut(many=True))
    @one_snapshot()
    def get(self, request: Request) -> Response:
        pages = Pages()
        name = request.query_params.get("name")
        names = None if name is None else [name]
        found = records(cluster_of(request), timezone.now(), names=names)
        page = pages.paginate_queryset(found, request, self)
        shown = NodeOut(page, many=True)  # type: ignore[arg-type]  # many
        return pages.get_paginated_response(shown.data)


class OneNode(APIView):
    """One present node, by uid."""

    @extend_schema(operation_id="nodes_retrieve", parameters=[CLUSTER], responses=NodeOut)
    @one_snapshot()
    def get(self, request: Request, uid: str) -> Response:
        cluster = cluster_of(request)
        node = Node.objects.filter(cluster=cluster, uid=uid, gone_at__isnull=True).first()
        found = records(cluster, timezone.now(), names=[node.name]) if node else []
        if not found:
            raise missing(f"node with the uid “{uid}” in {cluster.name}", "nodes")
        return Response(NodeOut(found[0]).data)
