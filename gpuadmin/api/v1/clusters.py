"""Clusters: what we read, when, and whether it worked."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers

from gpuadmin.api.v1.common import IN_ONE_SNAPSHOT, PAGE, PAGE_SIZE, time
from gpuadmin.fleet.models import Cluster
from gpuadmin.fleet.queries import clusters


class ClusterOut(serializers.ModelSerializer[Cluster]):
    """``nodes_observed_at`` and ``pods_observed_at``: the last whole read from the API server."""

    nodes_observed_at = time()
    pods_observed_at = time()

    class Meta:
        model = Cluster
        fields = [
            "name",
            "server",
            "version",
            "account",
            "simulated",
            "nodes_observed_at",
            "nodes_error",
            "pods_observed_at",
            "pods_error",
        ]


@IN_ONE_SNAPSHOT
@extend_schema(parameters=[PAGE, PAGE_SIZE])
class Clusters(generics.ListAPIView[Cluster]):
    """Every cluster that this console reads."""

    serializer_class = ClusterOut
    queryset = clusters()
