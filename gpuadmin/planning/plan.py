"""What a preview says, whatever the change: plain values that turn into JSON as they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gpuadmin.planning.edits import Value
from gpuadmin.planning.words import words


@dataclass(frozen=True)
class TargetPlan:
    """One object before and after. ``already``: there is nothing to write, ``message`` says why."""

    kind: str
    uid: str
    name: str
    before: Value
    after: Value
    already: bool
    message: str


@dataclass(frozen=True)
class PlannedPod:
    """A pod of the plan, on ``node`` ("" while it has none). ``gpu``: resource name → count.

    ``owner`` is "Kind name", or "" for a pod that nothing would make again. ``ours``: our agent.
    """

    uid: str
    namespace: str
    name: str
    node: str
    owner: str
    phase: str
    gpu: dict[str, int]
    ours: bool


@dataclass(frozen=True)
class TouchedPod(PlannedPod):
    """A pod on a target, and what becomes of it; it ``dies`` when it runs and is sent away."""

    effect: str
    dies: bool


@dataclass(frozen=True)
class Capacity:
    """What could be scheduled on the targets, in the resource's own unit; None is unknown."""

    resource: str
    free_now_before: int | None
    free_now_after: int | None


@dataclass(frozen=True)
class Confirm:
    """What has to be typed before the change: ``phrase``, when it is needed at all."""

    needed: bool
    phrase: str


@dataclass(frozen=True)
class Plan:
    """A change as it would be now. A plan with blockers is not carried out.

    ``missing``: those of the blockers that are targets which are not there.
    """

    title: str
    targets: tuple[TargetPlan, ...]
    pods_touched: tuple[TouchedPod, ...]
    gpu_workloads_lacking_toleration: tuple[PlannedPod, ...]
    capacity: tuple[Capacity, ...]
    warnings: tuple[str, ...]
    blockers: tuple[str, ...]
    missing: tuple[str, ...]
    kubectl: tuple[str, ...]
    confirm: Confirm

    def json(self) -> dict[str, Any]:
        return asdict(self)

    def basis(self) -> dict[str, Any]:
        """What the plan stands on: the objects as read, and the pods that die (by uid)."""
        return {
            "objects": {t.uid: {"name": t.name, "value": t.before} for t in self.targets},
            "dying": {p.uid: f"{p.namespace}/{p.name}" for p in self.pods_touched if p.dies},
        }


def difference(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Sentences for what moved between two bases of the same change."""
    found = []
    for uid, was in before["objects"].items():
        now = after["objects"].get(uid)
        if now is None:
            found.append(f"{was['name']} is gone.")
        elif now["value"] != was["value"]:
            found.append(f"{was['name']} was {_listed(was)} and is {_listed(now)}.")
    found += [f"{now['name']} is new." for uid, now in after["objects"].items()
              if uid not in before["objects"]]  # fmt: skip
    come = [name for uid, name in after["dying"].items() if uid not in before["dying"]]
    left = [name for uid, name in before["dying"].items() if uid not in after["dying"]]
    if come:
        found.append(f"These pods would be ended too: {', '.join(sorted(come))}.")
    if left:
        found.append(f"These pods would no longer be ended: {', '.join(sorted(left))}.")
    return found


def _listed(entry: dict[str, Any]) -> str:
    return "; ".join(words(entry["value"])) or "without any"
