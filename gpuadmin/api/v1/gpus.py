"""Cards: what each is, does, and who holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gpuadmin.api.paging import Pages
from gpuadmin.api.v1.common import CLUSTER, NAMED_LIST, cluster_of, missing, number, text, time
from gpuadmin.fleet.models import Cluster, Gpu, MigInstance
from gpuadmin.fleet.queries import why_null
from gpuadmin.fleet.snapshot import one_snapshot
from gpuadmin.planning.facts import CardAccount, Use
from gpuadmin.workloads.facts import NodeRecord, records
from gpuadmin.workloads.models import PodDevice


@dataclass(frozen=True)
class Card:
    """One stored card with its part in the node's account and what its containers hold."""

    record: NodeRecord
    gpu: Gpu
    account: CardAccount | None
    holders: list[PodDevice]


class InstanceOut(serializers.ModelSerializer[MigInstance]):
    """One MIG device; placement in memory slices."""

    class Meta:
        model = MigInstance
        fields = [
            "uuid",
            "profile",
            "gpu_instance_id",
            "compute_instance_id",
            "compute_slices",
            "placement_start",
            "placement_size",
            "memory_total_bytes",
            "memory_used_bytes",
        ]


class HolderOut(serializers.Serializer[PodDevice]):
    """A container that holds the card, a slice of it (``mig_uuid``) or a slot (from 0)."""

    namespace = serializers.CharField()
    pod = serializers.CharField(source="pod_name")
    container = serializers.CharField()
    resource = serializers.CharField()
    mig_uuid = serializers.CharField()
    slot = number()


class ReadingOut(serializers.Serializer[Gpu]):
    """The last report that had a reading of this card."""

    source = serializers.SerializerMethodField()  # type: ignore[assignment]
    observed_at = serializers.DateTimeField(source="read_at", allow_null=True)
    memory_used_bytes = number()
    utilization_percent = number()
    temperature_celsius = number()
    power_watts = serializers.FloatField(allow_null=True)
    power_limit_watts = serializers.FloatField(allow_null=True)
    ecc_uncorrectable = number()

    def get_source(self, gpu: Gpu) -> str:
        return "agent"


class GpuOut(serializers.Serializer[Card]):
    """One card. ``use`` is its part in the partition of cards, ``why`` the reason for it;
    ``why_null`` has the reason of each measured value that is null.
    """

    uuid = serializers.CharField(source="gpu.uuid")
    node_uid = serializers.CharField(source="record.node.uid")
    node_name = serializers.CharField(source="record.node.name")
    index = serializers.IntegerField(source="gpu.index")
    name = serializers.CharField(source="gpu.name")
    serial = serializers.CharField(source="gpu.serial")
    pci_bus_id = serializers.CharField(source="gpu.pci_bus_id")
    compute_capability = serializers.CharField(source="gpu.compute_capability")
    memory_kind = serializers.CharField(source="gpu.memory_kind")
    memory_total_bytes = number(source="gpu.memory_total_bytes")
    mig_mode_current = serializers.BooleanField(source="gpu.mig_mode_current", allow_null=True)
    mig_mode_pending = serializers.BooleanField(source="gpu.mig_mode_pending", allow_null=True)
    state = serializers.ChoiceField(Gpu.State.choices, source="gpu.state")
    state_since = serializers.DateTimeField(source="gpu.state_since")
    error = serializers.CharField(source="gpu.error")
    use = serializers.ChoiceField(
        [use.value for use in Use], source="account.use", default=None, allow_null=True
    )
    why = text(source="account.reason", default=None)
    held = serializers.BooleanField(source="account.held", default=None, allow_null=True)
    idle_since = time(source="gpu.idle_since")
    reading = ReadingOut(source="gpu")
    why_null = serializers.SerializerMethodField()
    instances = InstanceOut(source="gpu.instances", many=True)
    holders = HolderOut(many=True)

    def get_why_null(self, card: Card) -> dict[str, str]:
        return why_null(card.gpu)


class Gpus(APIView):
    """Every card that an agent has reported, by node and index."""

    pagination_class = Pages

    @extend_schema(operation_id="gpus_list", parameters=NAMED_LIST, responses=GpuOut(many=True))
    @one_snapshot()
    def get(self, request: Request) -> Response:
        pages = Pages()
        name = request.query_params.get("name")
        cards = [c for c in _cards(cluster_of(request)) if name in (None, c.gpu.name)]
        page = pages.paginate_queryset(cards, request, self)
        shown = GpuOut(page, many=True)  # type: ignore[arg-type]  # many
        return pages.get_paginated_response(shown.data)


class OneGpu(APIView):
    """One card, by its UUID."""

    @extend_schema(operation_id="gpus_retrieve", parameters=[CLUSTER], responses=GpuOut)
    @one_snapshot()
    def get(self, request: Request, uuid: str) -> Response:
        cluster = cluster_of(request)
        known = Gpu.objects.filter(node__cluster=cluster, uuid=uuid, node__gone_at__isnull=True)
        names = list(known.values_list("node__name", flat=True))
        found = [card for card in _cards(cluster, names) if card.gpu.uuid == uuid]
        if not found:
            raise missing(f"card with the UUID “{uuid}” in {cluster.name}", "gpus")
        return Response(GpuOut(found[0]).data)


def _cards(cluster: Cluster, names: list[str] | None = None) -> list[Card]:
    return [
        _card(record, gpu)
        for record in records(cluster, timezone.now(), names=names)
        for gpu in record.gpus
    ]


def _card(record: NodeRecord, gpu: Gpu) -> Card:
    instances: set[Any] = {instance.uuid for instance in gpu.instances.all()}
    holders = [d for d in record.devices if d.gpu_uuid == gpu.uuid or d.mig_uuid in instances]
    account = next((c for c in record.account.cards if c.uuid == gpu.uuid), None)
    return Card(record, gpu, account, holders)
