"""The preview of a change of nodes: who goes, who could not come back, what is left to schedule.

Pure. The taint manager ends pods that do not tolerate a NoExecute taint; the scheduler bars pods
that do not tolerate a NoSchedule or NoExecute taint; PreferNoSchedule bars nobody (C21, C22).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gpuadmin.planning.cordon import UNSCHEDULABLE
from gpuadmin.planning.counting import account
from gpuadmin.planning.edits import Edit, Value
from gpuadmin.planning.facts import NodeFacts, PodFact, Policy, TaintFact
from gpuadmin.planning.plan import Capacity, Confirm, Plan, PlannedPod, TargetPlan, TouchedPod
from gpuadmin.planning.taints import (
    NO_EXECUTE,
    PREFER_NO_SCHEDULE,
    JsonTaint,
    Taint,
    Toleration,
    closes,
    is_tolerated,
    seconds_until_eviction,
)

FINISHED = ("Succeeded", "Failed")
KUBERNETES_OWN = ("node.kubernetes.io", "node.cloudprovider.kubernetes.io")


@dataclass(frozen=True)
class NodeNow:
    """A node as just read: ``facts`` without taints and pods, which the snapshot has."""

    uid: str
    taints: list[JsonTaint]
    facts: NodeFacts

    @property
    def name(self) -> str:
        return self.facts.name


@dataclass(frozen=True)
class PodNow:
    """A pod as just read."""

    shown: PlannedPod
    tolerations: Sequence[Toleration]


@dataclass(frozen=True)
class Snapshot:
    """``pods`` are those on the nodes, None where we may not list them; ``elsewhere`` are the other
    GPU pods of the cluster, None where they are not known.

    ``missing`` says of each target that is not there why; ``unreadable`` counts pods that are
    listed but make no sense.
    """

    nodes: tuple[NodeNow, ...]
    pods: tuple[PodNow, ...] | None = ()
    elsewhere: tuple[PodNow, ...] | None = ()
    missing: tuple[str, ...] = ()
    unreadable: int = 0


@dataclass(frozen=True)
class Change:
    """One node's change. ``new`` is what pods meet there anew; ``taints`` and ``unschedulable`` are
    the node's afterwards.
    """

    node: NodeNow
    edit: Edit
    before: Value
    new: tuple[Taint, ...]
    taints: list[JsonTaint]
    unschedulable: bool

    @property
    def written_taints(self) -> set[Taint]:
        """The new taints that the node will carry: a cordon only acts like one."""
        return set(self.new) if isinstance(self.before, list) else set()


def of_taints(node: NodeNow, edit: Edit) -> Change:
    """A change of the taint list."""
    after = node.taints if edit.value is None else edit.value
    before = {Taint.of(taint) for taint in node.taints}
    new = tuple(taint for taint in map(Taint.of, edit.value or []) if taint not in before)
    return Change(node, edit, node.taints, new, after, node.facts.unschedulable)


def of_cordon(node: NodeNow, edit: Edit) -> Change:
    """A change of ``spec.unschedulable``, which keeps pods off like a taint (planning.cordon)."""
    closed = node.facts.unschedulable
    after = closed if edit.value is None else bool(edit.value["unschedulable"])
    new = (UNSCHEDULABLE,) if after and not closed else ()
    return Change(node, edit, {"unschedulable": closed}, new, node.taints, after)


def preview(
    snapshot: Snapshot,
    changes: Sequence[Change],
    *,
    title: str,
    kubectl: tuple[str, ...],
    policy: Policy,
    all_needed: bool = True,
) -> Plan:
    """The plan for one change per node of the snapshot.

    ``all_needed``: a node that is not there blocks it; else it goes without, while one is left.
    """
    blocks = all_needed or not snapshot.nodes
    touched = tuple(_touched(snapshot, changes))
    barring = {taint for change in changes for taint in change.written_taints if closes(taint)}
    dying = [pod for pod in touched if pod.dies]
    return Plan(
        title=title,
        targets=tuple(_target(change) for change in changes),
        pods_touched=touched,
        gpu_workloads_lacking_toleration=tuple(_lacking(snapshot, barring)),
        capacity=tuple(_capacity(snapshot, changes, touched, policy)),
        warnings=(
            *(() if blocks else snapshot.missing),
            *_warnings(snapshot, changes, touched),
        ),
        blockers=(*(snapshot.missing if blocks else ()), *_blockers(snapshot, changes)),
        missing=snapshot.missing,
        kubectl=kubectl,
        confirm=Confirm(bool(dying), phrase_for([node.name for node in snapshot.nodes])),
    )


def phrase_for(names: Sequence[str]) -> str:
    """What is typed to confirm: the node's name, or how many nodes."""
    return names[0] if len(names) == 1 else f"{len(names)} nodes"


def evicted_now(pods: Iterable[PodNow], taints: Iterable[JsonTaint]) -> list[PlannedPod]:
    """Pods that the NoExecute taints of their node send away at once, and that are still there."""
    found = [Taint.of(taint) for taint in taints]
    return [
        pod.shown
        for pod in pods
        if any(seconds_until_eviction(pod.tolerations, taint) == 0 for taint in found)
    ]


def _target(change: Change) -> TargetPlan:
    node, edit = change.node, change.edit
    after = change.before if edit.value is None else edit.value
    return TargetPlan(
        "node", node.uid, node.name, change.before, after, edit.value is None, edit.message
    )


def _touched(snapshot: Snapshot, changes: Sequence[Change]) -> Iterator[TouchedPod]:
    new = {change.node.name: change.new for change in changes}
    for pod in snapshot.pods or ():
        effect, goes = _effect(pod, new.get(pod.shown.node, ()))
        if effect:
            dies = goes and pod.shown.phase not in FINISHED
            yield TouchedPod(**vars(pod.shown), effect=effect, dies=dies)


def _effect(pod: PodNow, new: tuple[Taint, ...]) -> tuple[str, bool]:
    seconds = [
        after
        for taint in new
        if (after := seconds_until_eviction(pod.tolerations, taint)) is not None
    ]
    if seconds:
        soonest = min(seconds)
        return ("evicted now" if soonest == 0 else f"evicted after {soonest} s"), True
    if pod.shown.phase in FINISHED:
        return "", False
    barred = any(closes(taint) and not is_tolerated(pod.tolerations, taint) for taint in new)
    return ("stays, could not come back" if barred else ""), False


def _lacking(snapshot: Snapshot, barring: set[Taint]) -> Iterator[PlannedPod]:
    """GPU pods anywhere, Pending ones too, that a new taint would keep off."""
    for pod in (*(snapshot.pods or ()), *(snapshot.elsewhere or ())):
        waits_or_runs = pod.shown.gpu and pod.shown.phase not in FINISHED
        if waits_or_runs and not all(is_tolerated(pod.tolerations, taint) for taint in barring):
            yield pod.shown


def _capacity(
    snapshot: Snapshot, changes: Sequence[Change], touched: tuple[TouchedPod, ...], policy: Policy
) -> Iterator[Capacity]:
    gone = {pod.uid for pod in touched if pod.effect == "evicted now"}
    before: dict[str, list[int | None]] = {}
    after: dict[str, list[int | None]] = {}
    for change in changes:
        for taints, closed, without, sums in (
            (change.node.taints, change.node.facts.unschedulable, set(), before),
            (change.taints, change.unschedulable, gone, after),
        ):
            facts = replace(
                change.node.facts,
                unschedulable=closed,
                taints=tuple(TaintFact(taint["key"], taint["effect"]) for taint in taints),
                pods=_counted(snapshot, change.node.name, without),
            )
            for row in account(facts, policy).rows:
                sums.setdefault(row.name, []).append(row.free_now)
    for name in sorted({*before, *after}):
        yield Capacity(name, _sum(before.get(name, [])), _sum(after.get(name, [])))


def _counted(snapshot: Snapshot, node: str, without: set[str]) -> tuple[PodFact, ...] | None:
    if snapshot.pods is None:
        return None
    shown = (pod.shown for pod in snapshot.pods)
    return tuple(
        PodFact(pod.namespace, pod.name, pod.gpu)
        for pod in shown
        if pod.node == node and pod.phase not in FINISHED and pod.uid not in without
    )


def _sum(amounts: list[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def _warnings(
    snapshot: Snapshot, changes: Sequence[Change], touched: tuple[TouchedPod, ...]
) -> Iterator[str]:
    new = {taint for change in changes for taint in change.new}
    keys = {taint.key for change in changes for taint in change.written_taints}
    own = sorted(key for key in keys if key.partition("/")[0] in KUBERNETES_OWN)
    if own:
        yield f"Kubernetes itself sets and removes {', '.join(own)}: it may undo this at once."
    if any(taint.effect == PREFER_NO_SCHEDULE for taint in new):
        yield "PreferNoSchedule closes nothing: the scheduler only looks elsewhere first."
    agents = sorted(pod.node for pod in touched if pod.ours and pod.dies)
    if agents:
        yield f"Our own agent goes too: no readings from {', '.join(agents)}."
    stuck = sorted(pod.node for pod in touched if pod.ours and not pod.dies)
    if stuck:
        where = ", ".join(stuck)
        yield f"Our own agent stays, but could not come back after a restart on {where}."
    lost = [f"{p.namespace}/{p.name}" for p in touched if p.dies and not p.owner]
    if lost:
        yield f"Nothing owns {', '.join(sorted(lost))}: what is ended there is gone for good."
    if new and snapshot.pods is None:
        yield "We may not list pods, so it is not known whom this touches."
    if snapshot.elsewhere is None and any(closes(t) for c in changes for t in c.written_taints):
        yield "Pods elsewhere were not read of late: GPU pods of other nodes are not named here."
    if new and snapshot.unreadable:
        yield f"{snapshot.unreadable} pods could not be read and are not in this plan."


def _blockers(snapshot: Snapshot, changes: Sequence[Change]) -> Iterator[str]:
    evicts = any(taint.effect == NO_EXECUTE for change in changes for taint in change.new)
    if evicts and (snapshot.pods is None or snapshot.unreadable):
        yield "NoExecute ends pods and we cannot tell which: our account must be able to list pods."
