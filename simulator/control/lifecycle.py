"""The node lifecycle controller's taints: not ready, unreachable, cordoned."""

from __future__ import annotations

from simulator import marks
from simulator.api.kinds import NODES
from simulator.api.objects import Objects
from simulator.control.matching import Value

_READY_TAINTS = {
    "False": "node.kubernetes.io/not-ready",
    "Unknown": "node.kubernetes.io/unreachable",
}
_CORDON = "node.kubernetes.io/unschedulable"
_OURS = {*_READY_TAINTS.values(), _CORDON}


def keep_taints(objects: Objects, nodes: list[Value]) -> None:
    """Add and remove the taints that follow from conditions and ``spec.unschedulable``."""
    for node in nodes:
        spec = node.get("spec") or {}
        present = spec.get("taints") or []
        wanted = _wanted(node)
        kept = [taint for taint in present if taint["key"] not in _OURS or _id(taint) in wanted]
        missing = wanted - {_id(taint) for taint in kept}
        if len(kept) == len(present) and not missing:
            continue
        added = [
            {"key": key, "effect": effect, "timeAdded": marks.now()} for key, effect in missing
        ]
        value = {**node, "spec": {**spec, "taints": kept + sorted(added, key=_id)}}
        objects.update(NODES, ("", node["metadata"]["name"]), value, status=False)


def _wanted(node: Value) -> set[tuple[str, str]]:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = next((each["status"] for each in conditions if each["type"] == "Ready"), "False")
    wanted: set[tuple[str, str]] = set()
    if key := _READY_TAINTS.get(ready):
        wanted |= {(key, "NoSchedule"), (key, "NoExecute")}
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.add((_CORDON, "NoSchedule"))
    return wanted


def _id(taint: Value) -> tuple[str, str]:
    return taint["key"], taint["effect"]
