"""Addresses of the pages. Nodes and users go by name, operations by id."""

from django.urls import URLPattern, URLResolver, path

from gpuadmin.web.views import findings, nodes, operations, overview, session, setup, taint

urlpatterns: list[URLPattern | URLResolver] = [
    path("", overview.overview, name="overview"),
    path("sign-in", session.SignIn.as_view(), name="sign-in"),
    path("sign-out", session.SignOut.as_view(), name="sign-out"),
    path("nodes", nodes.nodes, name="nodes"),
    path("nodes/taint", taint.taint, name="taint"),
    path("nodes/<str:name>", nodes.node, name="node"),
    path("findings", findings.findings, name="findings"),
    path("operations", operations.history, name="operations"),
    path("operations/<uuid:operation_id>", operations.operation, name="operation"),
    path("operations/<uuid:operation_id>/undo", operations.undo, name="undo"),
    path("operations/<uuid:operation_id>/cancel", operations.cancel, name="cancel"),
    path("setup", setup.setup, name="setup"),
]
