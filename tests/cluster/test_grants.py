"""What ``deploy/rbac`` grants, proved by its effect on a real API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.objects import bare_node
from tests.controlplane.client import Client
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.cluster, pytest.mark.real_only]

TAINT = {"spec": {"taints": [{"key": "repair", "effect": "NoSchedule"}]}}
ALLOWED, FORBIDDEN, ALLOWED_BUT_ABSENT = 200, 403, 404


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/nodes", ALLOWED),
        ("/api/v1/nodes?watch=true&timeoutSeconds=1", ALLOWED),
        ("/api/v1/pods", ALLOWED),
        ("/api/v1/pods?watch=true&timeoutSeconds=1", ALLOWED),
        ("/apis/apps/v1/namespaces/gpuadmin/daemonsets/nobody", ALLOWED_BUT_ABSENT),
        ("/apis/apps/v1/namespaces/gpuadmin/daemonsets", FORBIDDEN),
        ("/apis/apps/v1/daemonsets", FORBIDDEN),
        ("/apis/apps/v1/namespaces/kube-system/daemonsets", FORBIDDEN),
        ("/api/v1/secrets", FORBIDDEN),
        ("/api/v1/namespaces/gpuadmin/secrets", FORBIDDEN),
        ("/api/v1/configmaps", FORBIDDEN),
    ],
)
def test_the_read_grant_shows_nodes_pods_and_our_daemonsets_only(
    reader: Path, path: str, status: int
) -> None:
    assert Client(reader).call("GET", path).status == status


def test_the_read_grant_changes_nothing(plane: ControlPlane, reader: Path) -> None:
    with bare_node(plane.admin, "read-only", gpus=1) as node:
        path = f"/api/v1/nodes/{node}"
        assert Client(reader).call("PATCH", path, TAINT).status == FORBIDDEN
        assert Client(reader).call("DELETE", path).status == FORBIDDEN
        assert "taints" not in plane.admin.get(path)["spec"]


def test_the_taint_grant_patches_a_node_but_neither_its_status_nor_its_life(
    plane: ControlPlane, tainter: Path
) -> None:
    with bare_node(plane.admin, "tainted", gpus=1) as node:
        path = f"/api/v1/nodes/{node}"
        assert Client(tainter).call("PATCH", path, TAINT).status == ALLOWED
        assert plane.admin.get(path)["spec"]["taints"] == TAINT["spec"]["taints"]
        assert Client(tainter).call("PATCH", f"{path}/status", {}).status == FORBIDDEN
        assert Client(tainter).call("DELETE", path).status == FORBIDDEN


def test_who_may_do_what_can_be_asked_with_the_read_grant(reader: Path) -> None:
    asked = {
        ("watch", "pods"): True,
        ("patch", "nodes"): False,
    }
    answers = {}
    for verb, resource in asked:
        attributes = {"verb": verb, "resource": resource}
        review = Client(reader).ok(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": attributes}},
        )
        answers[verb, resource] = review["status"]["allowed"]
    assert answers == asked
