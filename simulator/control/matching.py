"""Tolerations, node selectors and effective requests, as the scheduler reads them."""

from __future__ import annotations

from collections import Counter
from typing import Any

Value = dict[str, Any]


def tolerates(toleration: Value, taint: Value) -> bool:
    """Case C22: no effect means every effect, no key with Exists means every taint."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    operator = toleration.get("operator") or "Equal"
    key = toleration.get("key") or ""
    if not key:
        return operator == "Exists"
    if key != taint["key"]:
        return False
    return operator == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


def untolerated(pod_spec: Value, taints: list[Value], effects: tuple[str, ...]) -> list[Value]:
    """The taints of these effects that no toleration of the pod covers."""
    tolerations = pod_spec.get("tolerations") or []
    return [
        taint
        for taint in taints
        if taint["effect"] in effects and not any(tolerates(each, taint) for each in tolerations)
    ]


def selects(pod_spec: Value, node: Value) -> bool:
    """``nodeSelector`` and the required node affinity of a pod against one node."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (pod_spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(
        all(_expression(each, labels) for each in term.get("matchExpressions") or [])
        and all(_expression(each, fields) for each in term.get("matchFields") or [])
        for term in required.get("nodeSelectorTerms") or []
    )


def _expression(expression: Value, values: dict[str, str]) -> bool:
    key, operator = expression["key"], expression["operator"]
    listed = expression.get("values") or []
    if operator == "In":
        return values.get(key) in listed
    if operator == "NotIn":
        return values.get(key) not in listed
    return (key in values) is (operator == "Exists")


def effective_requests(pod_spec: Value) -> Counter[str]:
    """What one pod takes of a node, in thousandths (contracts.md 9.2, case C06)."""
    total = _sum(pod_spec.get("containers") or [])
    started: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in pod_spec.get("initContainers") or []:
        own = _sum([container])
        if container.get("restartPolicy") == "Always":
            started += own
            total += own
            peak |= started
        else:
            peak |= started + own
    overhead = {name: amount(text) for name, text in (pod_spec.get("overhead") or {}).items()}
    return (total | peak) + Counter(overhead)


def _sum(containers: list[Value]) -> Counter[str]:
    total: Counter[str] = Counter()
    for container in containers:
        requests = (container.get("resources") or {}).get("requests") or {}
        total += Counter({name: amount(text) for name, text in requests.items()})
    return total


_SUFFIXES = {
    **{f"{suffix}i": 1024**power for power, suffix in enumerate("KMGTP", 1)},
    **{suffix: 1000**power for power, suffix in enumerate("kMGTP", 1)},
}


def amount(text: object) -> int:
    """A quantity in thousandths of its unit: "500m" → 500, "8" → 8000, "1Ki" → 1 024 000."""
    quantity = str(text)
    if quantity.endswith("m"):
        return int(quantity.removesuffix("m"))
    for suffix, factor in _SUFFIXES.items():
        if quantity.endswith(suffix):
            return int(float(quantity.removesuffix(suffix)) * factor * 1000)
    return int(float(quantity) * 1000)


def is_ready(pod: Value) -> bool:
    """Whether the pod's Ready condition is true."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
