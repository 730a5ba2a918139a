"""What each component of ``deploy/`` grants, alone, proved by its effect on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.grants import COMPONENTS, PLUGIN_NAMESPACE, granted, held_names
from tests.cluster.objects import GPU, SETTLE_SECONDS, bare_node, gpu_pod, node_of
from tests.controlplane.client import Client, Document
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until
from tests.deploy.written import permissions

pytestmark = [pytest.mark.cluster, pytest.mark.real_only]

FORBIDDEN = 403
CORE, APPS = "/api/v1", "/apis/apps/v1"
OURS, PLUGIN, TESTS, OTHERS = (
    f"/namespaces/{name}" for name in ("gpuadmin", PLUGIN_NAMESPACE, "gpuadmin-tests", "default")
)
# Each door, and the components that open it. What is behind most does not exist, so that a door
# that is open answers 404: whether one may is asked first.
DOORS = {
    ("GET", f"{CORE}/nodes"): {"read"},
    ("GET", f"{CORE}/nodes?watch=true&timeoutSeconds=1"): {"read"},
    ("GET", f"{CORE}/pods"): {"read"},
    ("GET", f"{CORE}/pods?watch=true&timeoutSeconds=1"): {"read"},
    ("GET", f"{APPS}{OURS}/daemonsets/none"): {"read"},
    ("GET", f"{CORE}{OURS}/events"): {"read"},
    ("PATCH", f"{CORE}/nodes/none"): {"taint"},
    ("POST", f"{CORE}{OTHERS}/pods/none/eviction"): {"drain"},
    ("GET", f"{CORE}{PLUGIN}/configmaps"): {"sharing"},
    ("POST", f"{CORE}{PLUGIN}/configmaps"): {"sharing"},
    ("PATCH", f"{CORE}{PLUGIN}/configmaps/none"): {"sharing"},
    ("DELETE", f"{CORE}{PLUGIN}/configmaps/none"): {"sharing"},
    ("PATCH", "/apis/nvidia.com/v1/clusterpolicies/none"): {"sharing"},
    ("DELETE", f"{CORE}{PLUGIN}/pods/none"): {"sharing", "plugin"},
    ("GET", f"{APPS}{PLUGIN}/daemonsets"): {"plugin"},
    ("POST", f"{APPS}{PLUGIN}/daemonsets"): {"plugin"},
    ("PATCH", f"{APPS}{PLUGIN}/daemonsets/none"): {"plugin"},
    ("DELETE", f"{APPS}{PLUGIN}/daemonsets/none"): {"plugin"},
    ("POST", f"{CORE}{TESTS}/pods"): {"testpods"},
    ("DELETE", f"{CORE}{TESTS}/pods/none"): {"testpods"},
    ("GET", f"{CORE}{TESTS}/pods/none/log"): {"testpods"},
    ("GET", f"{CORE}{TESTS}/events"): {"testpods"},
    ("GET", f"{CORE}{OURS}/pods/none/exec?command=id"): {"exec"},
    ("POST", f"{CORE}{OURS}/pods/none/exec?command=id"): {"exec"},
    ("GET", f"{CORE}{OURS}/pods/none:9477/proxy/v1/report"): {"proxy"},
    ("POST", f"{CORE}{OURS}/pods/none:9477/proxy/v1/release"): {"proxy"},
    # Doors that nothing opens.
    ("GET", f"{CORE}/secrets"): set(),
    ("GET", f"{CORE}{OURS}/secrets/gpuadmin-agent-token"): set(),
    ("GET", f"{CORE}{PLUGIN}/secrets"): set(),
    ("GET", f"{CORE}{OTHERS}/configmaps"): set(),
    ("GET", f"{APPS}/daemonsets"): set(),
    ("GET", f"{APPS}{OURS}/daemonsets"): set(),
    ("PATCH", f"{CORE}/nodes/none/status"): set(),
    ("DELETE", f"{CORE}/nodes/none"): set(),
    ("GET", f"{CORE}/nodes/none/proxy/pods"): set(),
    ("POST", f"{CORE}{OURS}/pods"): set(),
    ("DELETE", f"{CORE}{OTHERS}/pods/none"): set(),
    ("PATCH", f"{CORE}{OTHERS}/pods/none"): set(),
    ("GET", f"{CORE}{OTHERS}/pods/none/log"): set(),
    ("POST", f"{CORE}{OTHERS}/pods/none/exec?command=id"): set(),
    ("GET", f"{CORE}{PLUGIN}/pods/none:80/proxy/"): set(),
    ("PATCH", f"{CORE}{TESTS}"): set(),
    ("POST", f"{CORE}{OURS}/serviceaccounts/gpuadmin/token"): set(),
    ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"): set(),
}
OPTIONAL = [name for name in COMPONENTS if name != "read"]


@pytest.fixture(scope="module")
def namespaces(plane: ControlPlane, reader: Path) -> list[str]:
    """Those that any component names, and one of somebody else."""
    plane.admin.call("POST", f"{CORE}/namespaces", {"metadata": {"name": PLUGIN_NAMESPACE}})
    return ["gpuadmin", PLUGIN_NAMESPACE, "gpuadmin-tests", "default"]


@pytest.fixture(scope="module", params=["read", *OPTIONAL])
def alone(
    plane: ControlPlane, reader: Path, namespaces: list[str], request: pytest.FixtureRequest
) -> Iterator[str]:
    """The one component beside ``read`` that our account holds; "read" when it is all."""
    name: str = request.param
    if name == "read":
        yield name
        return
    with granted(plane, reader, name):
        yield name


def test_the_product_knows_that_it_holds_this_component_and_no_other(
    reader: Path, alone: str
) -> None:
    assert held_names(reader) == {"read", alone}


def test_what_must_work_works_and_all_else_is_refused(reader: Path, alone: str) -> None:
    client = Client(reader)
    opened = {
        door: client.call(*door, None if door[0] == "GET" else {}).status != FORBIDDEN
        for door in DOORS
    }
    assert opened == {door: bool(keys & {"read", alone}) for door, keys in DOORS.items()}


def test_kubectl_lists_just_what_docs_permissions_md_says(
    plane: ControlPlane, reader: Path, namespaces: list[str], alone: str
) -> None:
    for namespace in namespaces:
        listed = can_i(plane, reader, namespace)
        assert listed == permissions({"every account", "read", alone}, namespace), namespace


def test_the_agents_account_may_do_nothing(
    plane: ControlPlane, reader: Path, namespaces: list[str]
) -> None:
    agent = plane.kubeconfig_for("gpuadmin-agent", "gpuadmin")
    for namespace in namespaces:
        assert can_i(plane, agent, namespace) == permissions({"every account"}, namespace)


def can_i(plane: ControlPlane, user: Path, namespace: str) -> dict[str, set[str]]:
    """What ``kubectl auth can-i --list`` prints: the verbs by resource."""
    printed = plane.kubectl(
        "auth", "can-i", "--list", "--no-headers", "--namespace", namespace, kubeconfig=user
    )
    found: dict[str, set[str]] = {}
    for line in printed.splitlines():
        resource, rest = line.split(maxsplit=1)
        if resource.startswith("["):  # an address such as /healthz, open to everybody
            continue
        verbs = rest.rpartition("[")[2].rstrip("] ")
        found.setdefault(resource, set()).update(verbs.split())
    return found


def test_the_read_grant_changes_nothing(plane: ControlPlane, reader: Path) -> None:
    with bare_node(plane.admin, "read-only", gpus=1) as node:
        path = f"{CORE}/nodes/{node}"
        taint = {"spec": {"taints": [{"key": "repair", "effect": "NoSchedule"}]}}
        assert Client(reader).call("PATCH", path, taint).status == FORBIDDEN
        assert "taints" not in plane.admin.get(path)["spec"]


def test_the_drain_grant_evicts_a_pod_that_it_may_not_delete(
    plane: ControlPlane, reader: Path
) -> None:
    with (
        granted(plane, reader, "drain"),
        bare_node(plane.admin, "drained", gpus=1) as node,
        gpu_pod(plane.admin, "leaves", gpus=1, node=node) as pod,
    ):
        node_of(plane.admin, pod)
        assert Client(reader).call("DELETE", pod).status == FORBIDDEN
        eviction = {"metadata": {"name": "leaves", "namespace": "default"}}
        Client(reader).ok("POST", f"{pod}/eviction", eviction)
        assert plane.admin.get(pod)["metadata"]["deletionTimestamp"]


def test_a_test_pod_keeps_to_pod_security_and_to_the_quota(
    plane: ControlPlane, reader: Path
) -> None:
    pods = f"{CORE}{TESTS}/pods?dryRun=All"
    until(lambda: gone(plane.admin, f"{CORE}{TESTS}"), SETTLE_SECONDS, "the namespace to be gone")
    with granted(plane, reader, "testpods"):
        client = Client(reader)
        until(
            lambda: client.call("POST", pods, smoke_pod(1)).status == 201, SETTLE_SECONDS, "a pod"
        )
        assert "exceeded quota" in client.call("POST", pods, smoke_pod(17)).body["message"]
        rooted = smoke_pod(1)
        rooted["spec"]["hostNetwork"] = True
        assert "violates PodSecurity" in client.call("POST", pods, rooted).body["message"]


def smoke_pod(gpus: int) -> Document:
    """A pod that keeps to "restricted" and asks for so many GPUs."""
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": "main",
        "image": "none",
        "resources": {"limits": {GPU: str(gpus)}},
        "securityContext": context | {"runAsNonRoot": True},
    }
    spec = {
        "containers": [container],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    }
    return {"metadata": {"name": "smoke"}, "spec": spec}


def gone(admin: Client, path: str) -> bool:
    return admin.call("GET", path).status == 404
