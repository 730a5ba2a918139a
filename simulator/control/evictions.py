"""The taint manager: pods leave a node with a NoExecute taint, at once or after their time."""

from __future__ import annotations

import time
from collections.abc import Callable

from simulator.api.kinds import PODS
from simulator.api.objects import Objects
from simulator.control.events import record
from simulator.control.matching import Value, tolerates, untolerated

_SOURCE = "taint-eviction-controller"


class Evictions:
    """Deadlines of pods that tolerate a NoExecute taint for a while, by pod uid."""

    def __init__(self, objects: Objects, clock: Callable[[], float] = time.monotonic) -> None:
        self._objects = objects
        self._clock = clock
        self._deadlines: dict[str, float] = {}

    def evict(self, nodes: list[Value], pods: list[Value]) -> float | None:
        """Delete what must leave now. Answers the seconds until the next pod's time is up."""
        taints = {node["metadata"]["name"]: _no_execute(node) for node in nodes}
        now = self._clock()
        deadlines: dict[str, float] = {}
        for pod in pods:
            metadata = pod["metadata"]
            on_node = taints.get(pod["spec"].get("nodeName", ""), [])
            stay = _seconds_to_stay(pod["spec"], on_node)
            if stay is None or metadata.get("deletionTimestamp"):
                continue
            deadline = self._deadlines.get(metadata["uid"], now + stay)
            if deadline > now:
                deadlines[metadata["uid"]] = deadline
                continue
            name = f"{metadata['namespace']}/{metadata['name']}"
            text = f"Marking for deletion Pod {name}"
            record(self._objects, _SOURCE, pod, "Normal", "TaintManagerEviction", text)
            self._objects.delete(PODS, (metadata["namespace"], metadata["name"]), {})
        self._deadlines = deadlines
        return min(deadlines.values()) - now if deadlines else None


def _no_execute(node: Value) -> list[Value]:
    taints = (node.get("spec") or {}).get("taints") or []
    return [taint for taint in taints if taint["effect"] == "NoExecute"]


def _seconds_to_stay(pod_spec: Value, taints: list[Value]) -> float | None:
    """None: for ever. 0: a taint is not tolerated. Else the shortest tolerationSeconds."""
    if not taints:
        return None
    if untolerated(pod_spec, taints, ("NoExecute",)):
        return 0.0
    limits = [
        float(toleration["tolerationSeconds"])
        for toleration in pod_spec.get("tolerations") or []
        if toleration.get("tolerationSeconds") is not None
        and any(tolerates(toleration, taint) for taint in taints)
    ]
    return max(0.0, min(limits)) if limits else None
