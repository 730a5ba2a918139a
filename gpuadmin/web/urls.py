"""Addresses of the pages. Nodes and users go by name, operations by id."""

from django.urls import URLPattern, URLResolver, path

from gpuadmin.web.views import (
    account,
    cordon,
    findings,
    kubeconfig,
    nodes,
    operations,
    overview,
    session,
    setup,
    taint,
    users,
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("", overview.overview, name="overview"),
    path("sign-in", session.SignIn.as_view(), name="sign-in"),
    path("sign-out", session.SignOut.as_view(), name="sign-out"),
    path("nodes", nodes.nodes, name="nodes"),
    path("nodes/taint", taint.taint, name="taint"),
    path("nodes/cordon", cordon.cordon, name="cordon"),
    path("nodes/<str:name>", nodes.node, name="node"),
    path("findings", findings.findings, name="findings"),
    path("operations", operations.history, name="operations"),
    path("operations/<uuid:operation_id>", operations.operation, name="operation"),
    path("operations/<uuid:operation_id>/undo", operations.undo, name="undo"),
    path("operations/<uuid:operation_id>/cancel", operations.cancel, name="cancel"),
    path("setup", setup.setup, name="setup"),
    path("setup/kubeconfig", kubeconfig.kubeconfig, name="kubeconfig"),
    path("setup/kubeconfig/remove", kubeconfig.remove, name="remove-kubeconfig"),
    path("account", account.account, name="account"),
    path("account/password", account.password, name="change-password"),
    path("account/new-token", account.new_token, name="new-token"),
    path("account/revoke-token", account.revoke, name="revoke-token"),
    path("account/end-session", account.end, name="end-session"),
    path("users", users.users, name="users"),
    path("new-user", users.new_user, name="new-user"),
    path("users/<str:name>", users.user, name="user"),
    path("users/<str:name>/role", users.role, name="user-role"),
    path("users/<str:name>/password", users.password, name="user-password"),
    path("users/<str:name>/disable", users.disable, name="user-disable"),
    path("users/<str:name>/enable", users.enable, name="user-enable"),
    path("users/<str:name>/sign-out", users.sign_out, name="user-sign-out"),
    path("users/<str:name>/revoke-token", users.revoke, name="user-revoke"),
]
