"""A cluster of everything that makes counting hard, without any agent; see ``NODES`` and ``PODS``.

Nobody stands behind the nodes. Pods are bound by their maker, not by the scheduler, which is how
a node gets more requests than it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.cluster.objects import PODS as POD_PATH
from tests.cluster.objects import SETTLE_SECONDS, remove_node
from tests.controlplane.client import Client, Document
from tests.controlplane.waiting import until

GPU, SHARED, AMD = "nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu"
SMALL, LARGE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
PRODUCT, COUNT, REPLICAS = (f"nvidia.com/gpu.{name}" for name in ("product", "count", "replicas"))
H100 = {PRODUCT: "NVIDIA-H100-80GB-HBM3", COUNT: "8", REPLICAS: "1"}
L40S = {PRODUCT: "NVIDIA-L40S", COUNT: "4"}
T4 = {PRODUCT: "Tesla-T4", COUNT: "4"}
Amounts = dict[str, int]


@dataclass(frozen=True)
class BagNode:
    """One node: what it advertises, and ``withdrawn`` of it as unhealthy."""

    capacity: Amounts
    labels: dict[str, str] = field(default_factory=dict)
    withdrawn: Amounts = field(default_factory=dict)
    ready: bool = True
    spec: Document = field(default_factory=dict)


@dataclass(frozen=True)
class BagPod:
    """One pod: what each container asks for, in order; ``sidecars`` are the first of ``init``."""

    node: str
    asks: tuple[Amounts, ...]
    init: tuple[Amounts, ...] = ()
    sidecars: int = 0
    phase: str = "Running"


def taint(key: str, value: str = "") -> Document:
    return {"taints": [{"key": key, "value": value, "effect": "NoSchedule"}]}


NODES = {
    "whole": BagNode({GPU: 8}, H100),
    "unhealthy": BagNode({GPU: 8}, H100, withdrawn={GPU: 2}, spec=taint(GPU, "present")),
    "sliced": BagNode({GPU: 6, SMALL: 7, LARGE: 2}, H100),
    "renamed": BagNode({GPU: 0, SHARED: 16}, L40S | {REPLICAS: "4"}),
    "shared": BagNode({GPU: 16}, L40S | {REPLICAS: "4"}),
    "shared-idle": BagNode({GPU: 8}, T4 | {COUNT: "2", REPLICAS: "4"}),
    "cordoned": BagNode({GPU: 4}, T4, spec={"unschedulable": True}),
    "silent": BagNode({GPU: 4}, T4, ready=False),
    "tainted": BagNode({GPU: 4}, T4, spec=taint("team", "vision")),
    "over": BagNode({GPU: 2}),
    "withdrawn": BagNode({GPU: 4}, withdrawn={GPU: 4}),
    "other-vendor": BagNode({AMD: 4}),
    "no-gpus": BagNode({}),
}
PODS = {
    "plain": BagPod("whole", ({GPU: 1}, {}, {GPU: 1})),
    "init-larger": BagPod("whole", ({GPU: 1},), init=({GPU: 2}, {GPU: 1})),
    "with-sidecar": BagPod("whole", ({GPU: 1},), init=({GPU: 1}, {GPU: 1}), sidecars=1),
    "ended": BagPod("whole", ({GPU: 8},), phase="Succeeded"),
    "broken": BagPod("whole", ({GPU: 8},), phase="Failed"),
    "bound-not-started": BagPod("unhealthy", ({GPU: 3},), phase="Pending"),
    "small-slices": BagPod("sliced", ({SMALL: 2}, {SMALL: 1})),
    "large-and-card": BagPod("sliced", ({LARGE: 1, GPU: 1},)),
    "three-slots": BagPod("renamed", ({SHARED: 3},)),
    "five-slots": BagPod("shared", ({GPU: 5},)),
    "on-cordoned": BagPod("cordoned", ({GPU: 1},)),
    "on-silent": BagPod("silent", ({GPU: 2},)),
    "over-1": BagPod("over", ({GPU: 2},)),
    "over-2": BagPod("over", ({GPU: 1},)),
    "on-other-vendor": BagPod("other-vendor", ({AMD: 1},)),
    "no-gpu": BagPod("whole", ({},)),
    "waits-for-cards": BagPod("", ({GPU: 64},), phase="Pending"),
    "waits-for-slices": BagPod("", ({SMALL: 3}, {LARGE: 9}), phase="Pending"),
    "waits-unasking": BagPod("", ({},), phase="Pending"),
}


@contextmanager
def mixed_bag(admin: Client) -> Iterator[None]:
    """Make the nodes and pods; gone on leaving. Nodes turn Unknown some 50 s after they came."""
    try:
        for name, node in NODES.items():
            _make_node(admin, name, node)
        for name, pod in PODS.items():
            _make_pod(admin, name, pod)
        until(lambda: _untainted(admin), SETTLE_SECONDS, "the new nodes to be let in")
        yield
    finally:
        for name in PODS:
            admin.call("DELETE", f"{POD_PATH}/{name}", {"gracePeriodSeconds": 0})
        for name in NODES:
            remove_node(admin, name)


def _make_node(admin: Client, name: str, node: BagNode) -> None:
    labels = {"kubernetes.io/hostname": name} | node.labels
    body = {"metadata": {"name": name, "labels": labels}, "spec": node.spec}
    admin.ok("POST", "/api/v1/nodes", body)
    own = {"cpu": "8", "memory": "32Gi", "pods": "20"}
    capacity = own | {resource: str(amount) for resource, amount in node.capacity.items()}
    left = {r: str(node.capacity[r] - amount) for r, amount in node.withdrawn.items()}
    ready = {"type": "Ready", "status": str(node.ready), "reason": "Kubelet", "message": "told"}
    # Or a node is as old to the controller-manager as the one that bore its name a moment ago.
    ready["lastHeartbeatTime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"capacity": capacity, "allocatable": capacity | left, "conditions": [ready]}
    admin.ok("PATCH", f"/api/v1/nodes/{name}/status", {"status": status})


def _make_pod(admin: Client, name: str, pod: BagPod) -> None:
    init = [_container(f"init-{i}", asks) for i, asks in enumerate(pod.init)]
    for container in init[: pod.sidecars]:
        container["restartPolicy"] = "Always"
    spec: Document = {
        "containers": [_container(f"main-{i}", asks) for i, asks in enumerate(pod.asks)],
        "initContainers": init,
        "terminationGracePeriodSeconds": 1,
    }
    if pod.node:
        spec["nodeName"] = pod.node
    else:  # no node has it, so that it waits for good
        spec["nodeSelector"] = {"kubernetes.io/hostname": "nowhere"}
    admin.ok("POST", POD_PATH, {"metadata": {"name": name}, "spec": spec})
    admin.ok("PATCH", f"{POD_PATH}/{name}/status", {"status": {"phase": pod.phase}})


def _container(name: str, asks: Amounts) -> Document:
    limits = {resource: str(amount) for resource, amount in asks.items()}
    return {"name": name, "image": "none", "resources": {"limits": limits}}


def _untainted(admin: Client) -> bool:
    """Every new node is tainted as not ready until the controller-manager has looked at it."""
    nodes = admin.get("/api/v1/nodes")["items"]
    tainted = {
        node["metadata"]["name"]
        for node in nodes
        for taint in node["spec"].get("taints", [])
        if taint["key"] == "node.kubernetes.io/not-ready"
    }
    return tainted == {name for name, node in NODES.items() if not node.ready}
