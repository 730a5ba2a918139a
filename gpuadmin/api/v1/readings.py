"""The last hours of a node's cards."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gpuadmin.api.v1.common import CLUSTER, cluster_of, number
from gpuadmin.fleet.models import Gpu, Node
from gpuadmin.fleet.snapshot import one_snapshot
from gpuadmin.ledger.queries import DEFAULT_RANGE, RANGES, readings

RANGE = OpenApiParameter("range", str, enum=list(RANGES), description=f"{DEFAULT_RANGE} else.")


class ReadingStepOut(serializers.Serializer[Any]):
    """Means of one step, but the temperature's highest; null: not measured."""

    at = serializers.DateTimeField()
    samples = serializers.IntegerField()
    utilization_percent = serializers.FloatField(allow_null=True)
    memory_used_bytes = number()
    temperature_celsius = number()
    power_watts = serializers.FloatField(allow_null=True)


class CardReadingsOut(serializers.Serializer[Any]):
    uuid = serializers.CharField()
    index = serializers.IntegerField()
    steps = ReadingStepOut(many=True)


class ReadingsOut(serializers.Serializer[Any]):
    """By card; a step in which nothing was read is left out."""

    source = serializers.CharField()  # type: ignore[assignment]
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    step_seconds = serializers.IntegerField()
    cards = CardReadingsOut(many=True)


class NodeReadings(APIView):
    """What the cards of a node did in the last hours."""

    @extend_schema(
        operation_id="nodes_readings", parameters=[CLUSTER, RANGE], responses=ReadingsOut
    )
    @one_snapshot()
    def get(self, request: Request, uid: str) -> Response:
        span = request.query_params.get("range", DEFAULT_RANGE)
        if span not in RANGES:
            raise ValidationError({"range": [f"One of {', '.join(RANGES)}."]})
        node = Node.objects.filter(cluster=cluster_of(request), uid=uid, gone_at=None).first()
        if node is None:
            raise Http404
        gpus = list(Gpu.objects.filter(node=node).order_by("index"))
        found = readings([gpu.pk for gpu in gpus], span, timezone.now())
        cards = [
            {"uuid": gpu.uuid, "index": gpu.index, "steps": found.of.get(gpu.pk, [])}
            for gpu in gpus
        ]
        answer = {
            "source": "agent",
            "since": found.since,
            "until": found.until,
            "step_seconds": int(found.step.total_seconds()),
            "cards": cards,
        }
        return Response(ReadingsOut(answer).data)
