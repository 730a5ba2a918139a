"""The GPUs of a cluster, counted from ``kubectl get nodes,pods -A -o json`` alone.

Written for the tests, from the rules and not from the product's code: what it gives is what the
product must show when it has neither agents nor more rights than to read nodes and pods. None is
"not to be known from there".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.controlplane.client import Document

CARDS = "nvidia.com/gpu"
NEITHER_NOR = ("cpu", "memory", "pods", "ephemeral-storage", "hugepages-1Gi", "hugepages-2Mi")


@dataclass(frozen=True)
class Resource:
    """One resource name on one node, in its own unit: card, slice, slot or other."""

    unit: str
    capacity: int
    allocatable: int
    requested: int
    free: int
    free_now: int
    over_committed: int


@dataclass(frozen=True)
class Node:
    """Cards: how many, how many of them are held, and the parts that add up to all of them."""

    owned: int
    held: int | None
    parts: Counter[str]
    resources: dict[str, Resource]


def count(items: list[Document]) -> dict[str, Node]:
    """Every node by name."""
    pods = [item for item in items if item["kind"] == "Pod"]
    return {item["metadata"]["name"]: _node(item, pods) for item in items if item["kind"] == "Node"}


def waiting(items: list[Document]) -> dict[str, dict[str, int]]:
    """What each pod asks for that has no node yet, by name; only those that ask for GPUs."""
    found = {
        item["metadata"]["name"]: asked(item)
        for item in items
        if item["kind"] == "Pod" and not item["spec"].get("nodeName")
    }
    return {name: amounts for name, amounts in found.items() if amounts}


def asked(pod: Document) -> dict[str, int]:
    """The most that a pod needs at any one moment: at the start of each init container and after
    them all, each time with the sidecars that run by then."""
    moments, sidecars = [], Counter[str]()
    for container in pod["spec"].get("initContainers", []):
        if container.get("restartPolicy") == "Always":
            sidecars += _limits(container)
            moments.append(Counter(sidecars))
        else:
            moments.append(sidecars + _limits(container))
    running = sum(map(_limits, pod["spec"]["containers"]), Counter[str]())
    moments.append(sidecars + running)
    names = {name for moment in moments for name in moment}
    return {name: max(moment[name] for moment in moments) for name in names}


def _limits(container: Document) -> Counter[str]:
    limits = container["resources"].get("limits", {})
    return Counter({name: int(text) for name, text in limits.items() if name not in NEITHER_NOR})


def _node(node: Document, pods: list[Document]) -> Node:
    name, status, labels = node["metadata"]["name"], node["status"], node["metadata"]["labels"]
    here = [
        asked(pod)
        for pod in pods
        if pod["spec"].get("nodeName") == name
        and pod["status"]["phase"] not in ("Succeeded", "Failed")
    ]
    requested = sum(map(Counter, here), Counter[str]())
    resources = {
        resource: _resource(
            _unit(resource, labels),
            int(capacity),
            int(status["allocatable"][resource]),
            requested[resource],
            closed=_closed(node),
        )
        for resource, capacity in status["capacity"].items()
        if resource not in NEITHER_NOR
    }
    return _cards(labels, resources)


def _closed(node: Document) -> bool:
    """Whether no GPU pod can come: pods for GPUs tolerate the taint nvidia.com/gpu, no other."""
    ready = {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"]
    taints = [
        taint
        for taint in node["spec"].get("taints", [])
        if taint["effect"] != "PreferNoSchedule" and taint["key"] != CARDS
    ]
    return ready != "True" or bool(node["spec"].get("unschedulable") or taints)


def _unit(resource: str, labels: dict[str, str]) -> str:
    if resource.startswith("nvidia.com/mig-"):
        return "slice"
    if resource == f"{CARDS}.shared" or int(labels.get(f"{CARDS}.replicas", 1)) > 1:
        return "slot"
    return "card" if resource == CARDS else "other"


def _resource(
    unit: str, capacity: int, allocatable: int, requested: int, *, closed: bool
) -> Resource:
    free = max(0, allocatable - requested)
    return Resource(
        unit=unit,
        capacity=capacity,
        allocatable=allocatable,
        requested=requested,
        free=free,
        free_now=0 if closed else free,
        over_committed=max(0, requested - allocatable),
    )


def _cards(labels: dict[str, str], resources: dict[str, Resource]) -> Node:
    """Cards from GPU feature discovery's count, else from what is advertised."""
    slots_each = int(labels.get(f"{CARDS}.replicas", 1))
    advertised = resources[CARDS].capacity // slots_each if CARDS in resources else 0
    owned = int(labels.get(f"{CARDS}.count", advertised))
    sliced = any(r.capacity for r in resources.values() if r.unit == "slice")
    counted = [r for r in resources.values() if r.unit in ("card", "slot")]
    asked_for = sum(r.requested for r in counted)
    if sliced or (slots_each > 1 and asked_for):
        # Which card carries a slice or a slot is known to the node alone.
        return Node(owned, None, Counter(unknown=owned), resources)
    held = min(asked_for, owned)
    free_now = sum(r.free_now for r in counted)
    open_cards = min(owned - held, -(-free_now // slots_each))
    parts = Counter(unmeasured=held, free=open_cards, blocked=owned - held - open_cards)
    return Node(owned, held, +parts, resources)
