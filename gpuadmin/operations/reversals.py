"""Whether what an operation wrote still holds. A reversal by others is shown, not fought.

Compared with our own rows of the cluster, which the watcher keeps: no request is made for it. A row
counts once the watcher has written it after our change was verified, and some seconds have passed,
since an event of before may still have been on its way.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from gpuadmin.fleet.models import Cluster, Node
from gpuadmin.operations.kinds import kind_of
from gpuadmin.operations.kinds.base import Image, Ref
from gpuadmin.operations.models import Operation, State, Step, Target
from gpuadmin.operations.queries import good_undo, undoable_targets

LOOKED_AT = timedelta(days=30)
SETTLED = timedelta(seconds=10)


def standing_on(cluster: Cluster, uid: str, now: datetime) -> list[tuple[Operation, Target]]:
    """What we wrote on one object and nobody has undone, the newest first; each with its target."""
    return [(op, target) for op, target in _latest(cluster, now, uid) if target.object_uid == uid]


def note_reversals(cluster: Cluster, now: datetime) -> None:
    """Date each target that no longer is as its latest operation left it; clear the date of one
    that is so again.
    """
    found = list(_latest(cluster, now))
    uids = [target.object_uid for _, target in found]
    nodes = {n.uid: n for n in Node.objects.filter(cluster=cluster, uid__in=uids, gone_at=None)}
    for operation, target in found:
        node = nodes.get(target.object_uid)
        done = _verified_at(target)
        if node is None or done is None or node.observed_at <= done or now < done + SETTLED:
            continue
        reversed_at = None if _holds(operation, target, node) else target.reversed_at or now
        if reversed_at != target.reversed_at:
            Target.objects.filter(pk=target.pk).update(reversed_at=reversed_at)


def _latest(
    cluster: Cluster, now: datetime, uid: str | None = None
) -> Iterator[tuple[Operation, Target]]:
    """For each thing of each object the operation that wrote it last, unless it was undone."""
    recent = Operation.objects.filter(
        cluster=cluster, state=State.SUCCEEDED, created_at__gte=now - LOOKED_AT
    )
    # Of all objects nobody reads a title: without the plan, the large part of a row.
    recent = recent.filter(targets__object_uid=uid) if uid else recent.defer("plan")
    seen: set[tuple[str, str]] = set()
    whole = recent.select_related("created_by").prefetch_related("targets__steps", "undos")
    for operation in whole.order_by("-created_at"):
        kind = kind_of(operation.kind)
        parameters = kind.parse(operation.parameters)
        undone = good_undo(operation) is not None
        for target in operation.targets.all() if undone else undoable_targets(operation):
            thing = (target.object_uid, kind.identity(parameters, target.object_uid))
            if thing not in seen and not undone and operation.undo_of_id is None:
                yield operation, target
            seen.add(thing)


def _verified_at(target: Target) -> datetime | None:
    steps = (step.finished_at for step in target.steps.all() if step.name == Step.Name.VERIFY)
    return next(steps, None)


def _holds(operation: Operation, target: Target, node: Node) -> bool:
    kind = kind_of(operation.kind)
    ref, image = Ref(target.object_uid, target.object_name), Image("", kind.stored(node))
    return kind.edit(kind.parse(operation.parameters), ref, image).value is None
