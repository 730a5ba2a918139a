"""Nodes and pods made through the API, on the simulator and the real control plane alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.controlplane.client import Client, Document
from tests.controlplane.waiting import until

GPU = "nvidia.com/gpu"
PODS = "/api/v1/namespaces/default/pods"
SETTLE_SECONDS = 20.0


@contextmanager
def bare_node(admin: Client, name: str, gpus: int) -> Iterator[str]:
    """A node that reports Ready with ``gpus`` GPUs; on leaving, it and its pods are gone.

    There is no kubelet behind it: nobody renews its Lease, so that it turns Unknown after about
    50 s (measured.md), and a pod that is deleted there stays until it is removed by force.
    """
    path = f"/api/v1/nodes/{name}"
    labels = {"kubernetes.io/hostname": name}
    admin.ok("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    try:
        resources = {"cpu": "8", "memory": "32Gi", "pods": "20", GPU: str(gpus)}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
        status = {"capacity": resources, "allocatable": resources, "conditions": [ready]}
        admin.ok("PATCH", f"{path}/status", {"status": status})
        until(lambda: "taints" not in admin.get(path)["spec"], SETTLE_SECONDS, f"{name} untainted")
        yield name
    finally:
        remove_node(admin, name)


def remove_node(admin: Client, name: str) -> None:
    """Delete a node and, by force, every pod on it; one that is gone already is fine."""
    admin.call("DELETE", f"/api/v1/nodes/{name}")
    for pod in admin.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}")["items"]:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        admin.call("DELETE", path, {"gracePeriodSeconds": 0})


def taint(admin: Client, node: str, *taints: Document) -> None:
    """Replace the node's taints."""
    admin.ok("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": list(taints) or None}})


@contextmanager
def gpu_pod(
    admin: Client,
    name: str,
    *,
    gpus: int,
    node: str,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
) -> Iterator[str]:
    """A pod that asks for ``gpus`` GPUs on the node of that hostname; gone on leaving.

    The node is asked for by its label, so that the scheduler decides. Yields the pod's path.
    """
    path = f"{PODS}/{name}"
    container = {"name": "main", "image": "none", "resources": {"limits": {GPU: str(gpus)}}}
    spec = {
        "containers": [container],
        "nodeSelector": {"kubernetes.io/hostname": node},
        "terminationGracePeriodSeconds": 1,
    }
    meta = {"name": name, "annotations": annotations or {}, "labels": labels or {}}
    admin.ok("POST", PODS, {"metadata": meta, "spec": spec})
    try:
        yield path
    finally:
        admin.call("DELETE", path, {"gracePeriodSeconds": 0})
        wait_gone(admin, path)


def node_of(admin: Client, pod: str) -> str:
    """Wait for the scheduler to place the pod at this path and return the node's name."""
    found: str = until(
        lambda: admin.get(pod)["spec"].get("nodeName"), SETTLE_SECONDS, f"{pod} to be placed"
    )
    return found


def refusal(admin: Client, pod: str) -> str:
    """Wait for the scheduler to refuse the pod at this path and return its sentence."""

    def sentence() -> str | None:
        conditions = admin.get(pod).get("status", {}).get("conditions", [])
        refused = [c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]
        return refused[0]["message"] if refused else None

    return until(sentence, SETTLE_SECONDS, f"the scheduler to refuse {pod}")


def wait_phase(admin: Client, pod: str, phase: str) -> Document:
    """Wait until the pod at this path is in ``phase`` and return it."""

    def reached() -> Document | None:
        found = admin.get(pod)
        return found if found.get("status", {}).get("phase") == phase else None

    return until(reached, SETTLE_SECONDS, f"{pod} to be {phase}")


def wait_gone(admin: Client, path: str) -> None:
    """Wait until nothing is at this path any more."""
    until(lambda: admin.call("GET", path).status == 404, SETTLE_SECONDS, f"{path} to be gone")
