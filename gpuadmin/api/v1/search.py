"""Finding nodes, cards, pods and namespaces by a part of their name."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gpuadmin.api.v1.common import CLUSTER, cluster_of
from gpuadmin.fleet.models import Gpu, Node
from gpuadmin.fleet.snapshot import one_snapshot
from gpuadmin.workloads.models import Pod
from gpuadmin.workloads.search import Found, search

QUERY = OpenApiParameter(
    "q", str, required=True, description="At least two characters of a name, a UUID or a serial."
)


class FoundNodeOut(serializers.ModelSerializer[Node]):
    class Meta:
        model = Node
        fields = ["uid", "name"]


class FoundGpuOut(serializers.ModelSerializer[Gpu]):
    node_name = serializers.CharField(source="node.name")

    class Meta:
        model = Gpu
        fields = ["uuid", "serial", "index", "node_name"]


class FoundPodOut(serializers.ModelSerializer[Pod]):
    class Meta:
        model = Pod
        fields = ["uid", "namespace", "name", "node_name", "phase"]


class FoundOut(serializers.Serializer[Found]):
    """At most eight of each kind; ``more`` names the kinds of which there are more."""

    nodes = FoundNodeOut(many=True)
    gpus = FoundGpuOut(many=True)
    pods = FoundPodOut(many=True)
    namespaces = serializers.ListField(child=serializers.CharField())
    more = serializers.ListField(child=serializers.CharField())


class Search(APIView):
    """Present nodes, cards, pods and namespaces that have ``q`` in their name."""

    @extend_schema(operation_id="search", parameters=[CLUSTER, QUERY], responses=FoundOut)
    @one_snapshot()
    def get(self, request: Request) -> Response:
        found = search(cluster_of(request), request.query_params.get("q", ""))
        return Response(FoundOut(found).data)
