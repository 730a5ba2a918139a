"""A plan as the sheet shows it: what changes, who goes, who stays, what is left to schedule."""

from __future__ import annotations

from dataclasses import dataclass

from gpuadmin.operations.store import Previewed
from gpuadmin.planning.plan import Capacity, PlannedPod, TargetPlan, TouchedPod
from gpuadmin.planning.resources import recognise
from gpuadmin.web.pictures.operations import Diff, diff
from gpuadmin.web.pictures.text import plain
from gpuadmin.web.pictures.waiting import asks


@dataclass(frozen=True)
class PodRow:
    name: str
    namespace: str
    node: str
    owner: str
    asks: str
    effect: str
    ours: bool
    alone: bool  # nothing would make it again


@dataclass(frozen=True)
class CapacityRow:
    short: str
    before: int | None
    after: int | None

    @property
    def way(self) -> str:
        """``up``, ``dn`` or "" where it stays or is unknown."""
        if self.before is None or self.after is None or self.before == self.after:
            return ""
        return "up" if self.after > self.before else "dn"


@dataclass(frozen=True)
class TargetRow:
    name: str
    already: bool
    message: str
    diff: Diff


@dataclass(frozen=True)
class PlanPicture:
    title: str
    fingerprint: str
    targets: list[TargetRow]
    dying: list[PodRow]
    staying: list[PodRow]
    lacking: list[PodRow]
    capacity: list[CapacityRow]
    warnings: list[str]
    blockers: list[str]
    kubectl: str
    phrase: str  # "" when nothing has to be typed
    nothing: bool

    @property
    def runs(self) -> bool:
        return not self.blockers and not self.nothing


def plan_picture(shown: Previewed) -> PlanPicture:
    """Everything of a preview, as text."""
    plan = shown.plan
    return PlanPicture(
        title=plain(plan.title),
        fingerprint=shown.fingerprint,
        targets=[_target(target) for target in plan.targets],
        dying=[_touched(pod) for pod in plan.pods_touched if pod.dies],
        staying=[_touched(pod) for pod in plan.pods_touched if not pod.dies],
        lacking=[_pod(pod, "") for pod in plan.gpu_workloads_lacking_toleration],
        capacity=[_capacity(row) for row in plan.capacity],
        warnings=[plain(text) for text in plan.warnings],
        blockers=[plain(text) for text in plan.blockers],
        kubectl="\n".join(plan.kubectl),
        phrase=plan.confirm.phrase if plan.confirm.needed else "",
        nothing=all(target.already for target in plan.targets),
    )


def _target(target: TargetPlan) -> TargetRow:
    changed = diff(target.before, target.after)
    return TargetRow(target.name, target.already, plain(target.message), changed)


def _touched(pod: TouchedPod) -> PodRow:
    return _pod(pod, pod.effect)


def _pod(pod: PlannedPod, effect: str) -> PodRow:
    return PodRow(
        name=pod.name,
        namespace=pod.namespace,
        node=pod.node,
        owner=pod.owner or "nothing, a bare pod",
        asks=asks(pod.gpu),
        effect=effect,
        ours=pod.ours,
        alone=not pod.owner,
    )


def _capacity(row: Capacity) -> CapacityRow:
    resource = recognise(row.resource)
    short = resource.short if resource else row.resource
    return CapacityRow(short, row.free_now_before, row.free_now_after)
