"""A scheduler by cordon, taints, node selector and fit, with the real one's messages."""

from __future__ import annotations

from collections import Counter

from simulator import marks
from simulator.api.kinds import PODS
from simulator.api.objects import Objects
from simulator.control.events import record
from simulator.control.matching import (
    Value,
    amount,
    effective_requests,
    selects,
    tolerates,
    untolerated,
)

NAME = "default-scheduler"
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_FINISHED = ("Succeeded", "Failed")


def schedule(objects: Objects, nodes: list[Value], pods: list[Value]) -> None:
    """Bind each waiting pod that fits somewhere; say of each other one why not."""
    waiting = [pod for pod in pods if _waits(pod)]
    if not waiting:
        return
    free = {node["metadata"]["name"]: _allocatable(node) for node in nodes}
    for pod in pods:
        if pod["spec"].get("nodeName") in free and pod["status"].get("phase") not in _FINISHED:
            _take(free[pod["spec"]["nodeName"]], pod)
    for pod in sorted(waiting, key=_age_and_name):
        failures = {
            node["metadata"]["name"]: _failures(pod, node, free[node["metadata"]["name"]])
            for node in nodes
        }
        fitting = [name for name, reasons in failures.items() if not reasons]
        if fitting:
            chosen = max(fitting, key=lambda name: (free[name]["pods"], name))
            _take(free[chosen], pod)
            _bind(objects, pod, chosen)
        else:
            _refuse(objects, pod, [*failures.values()])


def _waits(pod: Value) -> bool:
    spec = pod["spec"]
    return not (
        spec.get("nodeName")
        or spec.get("schedulingGates")
        or spec.get("schedulerName") != NAME
        or pod["metadata"].get("deletionTimestamp")
    )


def _age_and_name(pod: Value) -> tuple[str, str]:
    return pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]


def _allocatable(node: Value) -> Counter[str]:
    status = node.get("status") or {}
    return Counter({k: amount(text) for k, text in (status.get("allocatable") or {}).items()})


def _take(free: Counter[str], pod: Value) -> None:
    free.subtract(effective_requests(pod["spec"]))
    free["pods"] -= amount(1)


def _failures(pod: Value, node: Value, free: Counter[str]) -> list[str]:
    """Reasons of the first filter that fails; upstream stops at a node's first failing plugin."""
    spec, node_spec = pod["spec"], node.get("spec") or {}
    tolerations = spec.get("tolerations") or []
    if node_spec.get("unschedulable") and not any(tolerates(each, _CORDON) for each in tolerations):
        return ["node(s) were unschedulable"]
    if untolerated(spec, node_spec.get("taints") or [], ("NoSchedule", "NoExecute")):
        return ["node(s) had untolerated taint(s)"]
    if not selects(spec, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    lacking = [k for k, wanted in effective_requests(spec).items() if wanted > free[k]]
    full = ["Too many pods"] if free["pods"] < amount(1) else []
    return full + [f"Insufficient {resource}" for resource in lacking]


def _refuse(objects: Objects, pod: Value, failures: list[list[str]]) -> None:
    counted = Counter(reason for reasons in failures for reason in reasons)
    reasons = ", ".join(sorted(f"{number} {reason}" for reason, number in counted.items()))
    short = sum(any(each.startswith("Insufficient") for each in reasons) for reasons in failures)
    other = len(failures) - short
    victims = [f"{short} No preemption victims found for incoming pod"] if short else []
    helpless = [f"{other} Preemption is not helpful for scheduling"] if other else []
    total = f"0/{len(failures)} nodes are available"
    message = f"{total}: {reasons}. no new claims to deallocate, preemption: {total}: "
    message += ", ".join([*victims, *helpless]) + "."
    _condition(objects, pod, "False", {"reason": "Unschedulable", "message": message})
    record(objects, NAME, pod, "Warning", "FailedScheduling", message)


def _bind(objects: Objects, pod: Value, node_name: str) -> None:
    bound = {**pod, "spec": {**pod["spec"], "nodeName": node_name}}
    objects.store.put(PODS, _key(pod), {**bound, "metadata": dict(pod["metadata"])})
    _condition(objects, bound, "True", {})


def _condition(objects: Objects, pod: Value, status: str, why: Value) -> None:
    """Only what a pod met at once is dated back with it: one that had to wait is bound now."""
    current = objects.get(PODS, _key(pod)).value
    conditions = current["status"].get("conditions") or []
    before: Value = next((each for each in conditions if each["type"] == "PodScheduled"), {})
    changed = marks.now(ago_seconds=0 if before else marks.age_seconds(pod))
    if before.get("status") == status:
        changed = before["lastTransitionTime"]
    entry = {"type": "PodScheduled", "status": status, "lastTransitionTime": changed, **why}
    others = [each for each in conditions if each["type"] != "PodScheduled"]
    value = {**current, "status": {**current["status"], "conditions": [*others, entry]}}
    objects.update(PODS, _key(pod), value, status=True)


def _key(pod: Value) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]
