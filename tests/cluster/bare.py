"""Nodes and pods as bare API objects, without a kubelet: enough for the real scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.controlplane.client import Client, Document
from tests.controlplane.waiting import until

GPU = "nvidia.com/gpu"
PODS = "/api/v1/namespaces/default/pods"
SETTLE_SECONDS = 20.0


@contextmanager
def ready_node(admin: Client, name: str, gpus: int) -> Iterator[str]:
    """A node that reports Ready with ``gpus`` GPUs; on leaving, it and its pods are gone.

    Without a kubelet nobody renews its Lease: it turns Unknown after about 50 s (measured.md).
    """
    path = f"/api/v1/nodes/{name}"
    admin.ok("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    try:
        resources = {"cpu": "8", "memory": "32Gi", "pods": "20", GPU: str(gpus)}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
        status = {"capacity": resources, "allocatable": resources, "conditions": [ready]}
        admin.ok("PATCH", f"{path}/status", {"status": status})
        until(lambda: "taints" not in admin.get(path)["spec"], SETTLE_SECONDS, f"{name} untainted")
        yield name
    finally:
        for pod in admin.get(f"{PODS}?fieldSelector=spec.nodeName%3D{name}")["items"]:
            remove(admin, pod["metadata"]["name"])
        admin.ok("DELETE", path)


def taint(admin: Client, node: str, *taints: Document) -> None:
    """Replace the node's taints."""
    admin.ok("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": list(taints) or None}})


def create_pod(admin: Client, name: str, *, gpus: int) -> None:
    """Make a pod that asks for ``gpus`` GPUs, in the namespace default."""
    container = {"name": "main", "image": "none", "resources": {"limits": {GPU: str(gpus)}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    admin.ok("POST", PODS, {"metadata": {"name": name}, "spec": spec})


def remove(admin: Client, name: str) -> None:
    """Delete a pod at once; one that is gone already is fine."""
    admin.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})


def node_of(admin: Client, name: str) -> str:
    """Wait for the scheduler to place a pod and return the node's name."""
    found: str = until(
        lambda: admin.get(f"{PODS}/{name}")["spec"].get("nodeName"), SETTLE_SECONDS, "a placement"
    )
    return found


def refusal(admin: Client, name: str) -> str:
    """Wait for the scheduler to refuse a pod and return its sentence."""

    def sentence() -> str | None:
        conditions = admin.get(f"{PODS}/{name}").get("status", {}).get("conditions", [])
        refused = [c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]
        return refused[0]["message"] if refused else None

    return until(sentence, SETTLE_SECONDS, f"the scheduler to refuse {name}")
