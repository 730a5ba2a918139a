"""Pods that ask for accelerators."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import generics, serializers

from gpuadmin.api.v1.common import CLUSTER, IN_ONE_SNAPSHOT, NAMED_LIST, cluster_of, missing, time
from gpuadmin.workloads.models import Pod, PodDevice
from gpuadmin.workloads.queries import devices_of, present_pods


class DeviceOut(serializers.ModelSerializer[PodDevice]):
    """A device as the kubelet named it, and what it is; ``recognised`` false: nobody knows."""

    class Meta:
        model = PodDevice
        fields = [
            "container",
            "resource",
            "device_id",
            "gpu_uuid",
            "mig_uuid",
            "slot",
            "recognised",
        ]


class PodOut(serializers.ModelSerializer[Pod]):
    """One pod; ``requests`` by the scheduler's formula, from Kubernetes at ``observed_at``.

    ``devices`` is what its containers hold by the kubelet's word; null where that is not known.
    """

    source = serializers.SerializerMethodField()  # type: ignore[assignment]
    requests = serializers.DictField(child=serializers.IntegerField())
    tolerations = serializers.ListField(child=serializers.DictField())
    created_at = time()
    bound_at = time()
    started_at = time()
    finished_at = time()
    devices = serializers.SerializerMethodField()

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
            "devices",
            "source",
            "observed_at",
        ]

    def get_source(self, pod: Pod) -> str:
        return "kubernetes"

    @extend_schema_field(DeviceOut(many=True, allow_null=True))
    def get_devices(self, pod: Pod) -> Any:
        held = self.context["devices"][pod.uid]
        return None if held is None else DeviceOut(held, many=True).data


class WithDevices(generics.GenericAPIView[Pod]):
    """Reads the devices of all pods of an answer at once."""

    def get_serializer(self, *pods: Any, many: bool = False, **more: Any) -> Any:
        shown = [pod for one in pods for pod in (one if many else [one])]
        devices = devices_of(cluster_of(self.request), shown) if shown else {}
        context = {**self.get_serializer_context(), "devices": devices}
        return PodOut(*pods, many=many, **{**more, "context": context})


@IN_ONE_SNAPSHOT
@extend_schema(parameters=NAMED_LIST)
class Pods(WithDevices, generics.ListAPIView[Pod]):
    """Pods that exist in the cluster now, by namespace and name."""

    serializer_class = PodOut
    queryset = Pod.objects.none()

    def get_queryset(self) -> QuerySet[Pod]:
        found, name = present_pods(cluster_of(self.request)), self.request.query_params.get("name")
        return found if name is None else found.filter(name=name)


@IN_ONE_SNAPSHOT
@extend_schema(parameters=[CLUSTER])
class OnePod(WithDevices, generics.RetrieveAPIView[Pod]):
    """One pod, by uid."""

    serializer_class = PodOut
    queryset = Pod.objects.none()
    lookup_field = "uid"

    def get_object(self) -> Pod:
        cluster, uid = cluster_of(self.request), self.kwargs["uid"]
        pod = present_pods(cluster).filter(uid=uid).first()
        if pod is None:
            raise missing(f"pod with the uid “{uid}” in {cluster.name}", "pods")
        return pod
