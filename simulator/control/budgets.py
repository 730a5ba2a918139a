"""PodDisruptionBudgets, as far as evictions need them: how many pods may go, and who may not.

The pods that a budget expects are those that its selector finds; a real control plane asks the
pods' controllers for their scale, which are not simulated.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from simulator.api.errors import ApiError
from simulator.api.kinds import BUDGETS, PODS
from simulator.api.objects import Objects
from simulator.api.selectors import label_matcher
from simulator.control.matching import Value, is_ready

_ENDED = ("Succeeded", "Failed")
_MANY = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "


class Room(NamedTuple):
    """A budget's arithmetic at this moment, in pods."""

    expected: int
    healthy: int
    needed: int

    @property
    def allowed(self) -> int:
        return max(0, self.healthy - self.needed)


def keep_budgets(objects: Objects, pods: list[Value]) -> None:
    """Write each budget's status."""
    for key, document in objects.store.list(BUDGETS):
        budget = document.value
        room = room_of(budget, pods)
        status = {
            "expectedPods": room.expected,
            "currentHealthy": room.healthy,
            "desiredHealthy": room.needed,
            "disruptionsAllowed": room.allowed,
            "observedGeneration": budget["metadata"]["generation"],
        }
        objects.update(BUDGETS, key, {**budget, "status": status}, status=True)


def room_of(budget: Value, pods: list[Value]) -> Room:
    """How many of its pods there are, are ready and not leaving, and must stay."""
    mine = [pod for pod in pods if _covers(budget, pod)]
    expected = sum((pod.get("status") or {}).get("phase") not in _ENDED for pod in mine)
    healthy = sum(is_ready(pod) and not _leaves(pod) for pod in mine)
    spec = budget["spec"]
    if "maxUnavailable" in spec:
        return Room(expected, healthy, max(0, expected - _number(spec["maxUnavailable"], expected)))
    return Room(expected, healthy, _number(spec.get("minAvailable", 1), expected))


def evict(objects: Objects, key: tuple[str, str], body: Value) -> None:
    """The eviction subresource: delete the pod with its grace, or raise 429 with the budget.

    Raises 404, 409 (precondition) or 500 (two budgets) as well.
    """
    pod = objects.get(PODS, key).value
    pods = [document.value for _, document in objects.store.list(PODS, key[0])]
    budgets = [document.value for _, document in objects.store.list(BUDGETS, key[0])]
    covering = [budget for budget in budgets if _covers(budget, pod)]
    if not _counts_for_nothing(pod):
        if len(covering) > 1:
            raise ApiError(500, f"{_MANY}support.", reason="InternalError")
        for budget in covering:
            _check(budget, pod, pods)
    objects.delete(PODS, key, body.get("deleteOptions") or {})


def _check(budget: Value, pod: Value, pods: list[Value]) -> None:
    """Raises 429 when the budget can't spare this pod."""
    room, policy = room_of(budget, pods), budget["spec"].get("unhealthyPodEvictionPolicy")
    unready = not is_ready(pod)
    spared = unready and (policy == "AlwaysAllow" or room.healthy >= room.needed > 0)
    if room.allowed > 0 or spared:
        return
    name = budget["metadata"]["name"]
    error = ApiError(429, "Cannot evict pod as it would violate the pod's disruption budget.")
    text = f"The disruption budget {name} needs {room.needed} healthy pods and has {room.healthy}"
    error.details["causes"] = [{"reason": "DisruptionBudget", "message": f"{text} currently"}]
    raise error


def _counts_for_nothing(pod: Value) -> bool:
    """A pod that waits, has ended or leaves already is evicted whatever its budget says."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in (*_ENDED, "Pending") or _leaves(pod)


def _covers(budget: Value, pod: Value) -> bool:
    if budget["metadata"]["namespace"] != pod["metadata"]["namespace"]:
        return False
    selector: dict[str, Any] = budget["spec"].get("selector") or {}
    labels = pod["metadata"].get("labels") or {}
    terms = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    terms += [_term(each) for each in selector.get("matchExpressions") or []]
    return label_matcher(",".join(terms))(labels)


def _term(expression: Value) -> str:
    key, values = expression["key"], ",".join(expression.get("values") or [])
    match expression["operator"]:
        case "In" | "NotIn" as operator:
            return f"{key} {operator.lower()} ({values})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return str(key)


def _number(amount: int | str, expected: int) -> int:
    """A number of pods, or a share of the expected ones, rounded up."""
    if isinstance(amount, str):
        return math.ceil(int(amount.removesuffix("%")) * expected / 100)
    return amount


def _leaves(pod: Value) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))
