"""Addresses of the REST interface, without trailing slashes."""

from django.urls import path
from drf_spectacular.views import SpectacularJSONAPIView

from gpuadmin.api.v1 import (
    account,
    clusters,
    findings,
    gpus,
    kubeconfig,
    nodes,
    operations,
    pods,
    readings,
    search,
    users,
)

app_name = "api"
urlpatterns = [
    path("clusters", clusters.Clusters.as_view(), name="clusters"),
    path("kubeconfig", kubeconfig.OneKubeconfig.as_view(), name="kubeconfig"),
    path("kubeconfig/preview", kubeconfig.PreviewKubeconfig.as_view(), name="kubeconfig-preview"),
    path("nodes", nodes.Nodes.as_view(), name="nodes"),
    path("nodes/<str:uid>", nodes.OneNode.as_view(), name="node"),
    path("nodes/<str:uid>/readings", readings.NodeReadings.as_view(), name="node-readings"),
    path("gpus", gpus.Gpus.as_view(), name="gpus"),
    path("gpus/<str:uuid>", gpus.OneGpu.as_view(), name="gpu"),
    path("pods", pods.Pods.as_view(), name="pods"),
    path("pods/<str:uid>", pods.OnePod.as_view(), name="pod"),
    path("search", search.Search.as_view(), name="search"),
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
    path("account", account.Account.as_view(), name="account"),
    path("account/password", account.AccountPassword.as_view(), name="account-password"),
    path("account/tokens", account.AccountTokens.as_view(), name="account-tokens"),
    path("account/tokens/<path:token>", account.AccountToken.as_view(), name="account-token"),
    path("account/sessions", account.AccountSessions.as_view(), name="account-sessions"),
    path("account/sessions/<str:session>", account.AccountSession.as_view(), name="session"),
    path("users", users.Users.as_view(), name="users"),
    path("users/<str:name>", users.OneUser.as_view(), name="user"),
    path("users/<str:name>/password", users.UserPassword.as_view(), name="user-password"),
    path("users/<str:name>/sessions", users.UserSessions.as_view(), name="user-sessions"),
    path("users/<str:name>/tokens", users.UserTokens.as_view(), name="user-tokens"),
    path("users/<str:name>/tokens/<path:token>", users.OneUserToken.as_view(), name="user-token"),
    path("schema", SpectacularJSONAPIView.as_view(), name="schema"),
]
