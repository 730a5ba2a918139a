"""Findings: what is wrong now."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers

from gpuadmin.api.v1.common import IN_ONE_SNAPSHOT, LIST, cluster_of
from gpuadmin.fleet.models import Finding
from gpuadmin.fleet.queries import open_findings


class FindingOut(serializers.ModelSerializer[Finding]):
    """One finding, keyed by code and object."""

    class Meta:
        model = Finding
        fields = [
            "code",
            "severity",
            "object_kind",
            "object_uid",
            "object_name",
            "node_name",
            "sentence",
            "advice",
            "first_seen",
            "last_seen",
            "count",
        ]


@IN_ONE_SNAPSHOT
@extend_schema(parameters=LIST)
class Findings(generics.ListAPIView[Finding]):
    """Open findings, the worst first."""

    serializer_class = FindingOut
    queryset = Finding.objects.none()

    def get_queryset(self) -> QuerySet[Finding]:
        return open_findings(cluster_of(self.request))
