"""Pods that ask for accelerators."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers

from gpuadmin.api.v1.common import CLUSTER, LIST, cluster_of, time
from gpuadmin.workloads.models import Pod
from gpuadmin.workloads.queries import present_pods


class PodOut(serializers.ModelSerializer[Pod]):
    """One pod; ``requests`` by the scheduler's formula, from Kubernetes at ``observed_at``."""

    source = serializers.SerializerMethodField()  # type: ignore[assignment]
    requests = serializers.DictField(child=serializers.IntegerField())
    tolerations = serializers.ListField(child=serializers.DictField())
    created_at = time()
    bound_at = time()
    started_at = time()
    finished_at = time()

    class Meta:
        model = Pod
        fields = [
            "uid",
            "namespace",
            "name",
            "node_name",
            "phase",
            "reason",
            "message",
            "owner_kind",
            "owner_name",
            "requests",
            "tolerations",
            "created_at",
            "bound_at",
            "started_at",
            "finished_at",
            "source",
            "observed_at",
        ]

    def get_source(self, pod: Pod) -> str:
        return "kubernetes"


@extend_schema(parameters=LIST)
class Pods(generics.ListAPIView[Pod]):
    """Pods that exist in the cluster now, by namespace and name."""

    serializer_class = PodOut
    queryset = Pod.objects.none()

    def get_queryset(self) -> QuerySet[Pod]:
        return present_pods(cluster_of(self.request))


@extend_schema(parameters=[CLUSTER])
class OnePod(generics.RetrieveAPIView[Pod]):
    """One pod, by uid."""

    serializer_class = PodOut
    queryset = Pod.objects.none()
    lookup_field = "uid"

    def get_queryset(self) -> QuerySet[Pod]:
        return present_pods(cluster_of(self.request))
