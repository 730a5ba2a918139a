"""Addresses of the REST interface, without trailing slashes."""

from django.urls import path
from drf_spectacular.views import SpectacularJSONAPIView

from gpuadmin.api.v1 import clusters, findings, gpus, nodes, operations, pods

app_name = "api"
urlpatterns = [
    path("clusters", clusters.Clusters.as_view(), name="clusters"),
    path("nodes", nodes.Nodes.as_view(), name="nodes"),
    path("nodes/<str:uid>", nodes.OneNode.as_view(), name="node"),
    path("gpus", gpus.Gpus.as_view(), name="gpus"),
    path("gpus/<str:uuid>", gpus.OneGpu.as_view(), name="gpu"),
    path("pods", pods.Pods.as_view(), name="pods"),
    path("pods/<str:uid>", pods.OnePod.as_view(), name="pod"),
    path("findings", findings.Findings.as_view(), name="findings"),
    path("operations", operations.Operations.as_view(), name="operations"),
    path("operations/preview", operations.PreviewOperation.as_view(), name="preview"),
    path("operations/<uuid:operation_id>", operations.OneOperation.as_view(), name="operation"),
    path(
        "operations/<uuid:operation_id>/undo/preview",
        operations.PreviewUndo.as_view(),
        name="undo-preview",
    ),
    path("operations/<uuid:operation_id>/undo", operations.UndoOperation.as_view(), name="undo"),
    path(
        "operations/<uuid:operation_id>/cancel", operations.CancelOperation.as_view(), name="cancel"
    ),
    path("schema", SpectacularJSONAPIView.as_view(), name="schema"),
]
