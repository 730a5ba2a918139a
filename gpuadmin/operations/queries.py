"""What pages and API show of operations."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from gpuadmin.fleet.models import Cluster
from gpuadmin.operations.models import (
    ACTIVE_STATES,
    FINAL_STATES,
    GOOD_STATES,
    Lock,
    Operation,
    State,
    Target,
)


def operations(cluster: Cluster) -> QuerySet[Operation]:
    """All of a cluster, the newest first, with what a row of a list shows."""
    found = Operation.objects.filter(cluster=cluster)
    return found.select_related("created_by").prefetch_related("targets", "undos")


def operation_detail() -> QuerySet[Operation]:
    """Operations with targets and steps, in a fixed number of queries."""
    found = Operation.objects.select_related("created_by", "cluster", "undo_of")
    return found.prefetch_related("targets__steps", "undos")


def operations_on(cluster: Cluster, object_kind: str, object_uid: str) -> QuerySet[Operation]:
    """The history of one object, the newest first."""
    return operations(cluster).filter(
        targets__object_kind=object_kind, targets__object_uid=object_uid
    )


def waits_for(operation: Operation) -> Operation | None:
    """The operation that a queued one waits for: who holds one of its locks, or came earlier."""
    if operation.state != State.QUEUED:
        return None
    return rivals(operation).order_by("created_at").first()


def rivals(operation: Operation) -> QuerySet[Operation]:
    """Operations on a common object that hold their locks, or that stand before it in the queue."""
    holds = Exists(Lock.objects.filter(operation=OuterRef("pk")))
    earlier = Q(state=State.QUEUED, created_at__lt=operation.created_at)
    return (
        Operation.objects.filter(
            Q(holds) | earlier, cluster=operation.cluster_id, lock_keys__overlap=operation.lock_keys
        )
        .exclude(pk=operation.pk)
        .exclude(state__in=FINAL_STATES)
    )


def good_undo(operation: Operation) -> Operation | None:
    """The undo that waits, runs or has succeeded; there is one at most."""
    return next((undo for undo in operation.undos.all() if undo.state in GOOD_STATES), None)


def undoable_targets(operation: Operation) -> list[Target]:
    """Targets that an undo would cover: none when it has been undone already."""
    return [] if good_undo(operation) else written_targets(operation)


def written_targets(operation: Operation) -> list[Target]:
    """Targets that succeeded and that we wrote."""
    if operation.state in (State.QUEUED, State.RUNNING):
        return []
    return [t for t in operation.targets.all() if t.wrote and t.state == State.SUCCEEDED]


def to_put_back(now: datetime) -> QuerySet[Operation]:
    """Operations whose time is over, and that ended."""
    over = Operation.objects.filter(undo_at__lte=now, state__in=FINAL_STATES)
    return over.select_related("created_by", "cluster").prefetch_related("targets", "undos")


def due(now: datetime) -> QuerySet[Operation]:
    """Operations that a worker should take up: queued, or left by one whose lease ran out."""
    left = Q(state__in=ACTIVE_STATES) & (Q(lease_until=None) | Q(lease_until__lte=now))
    return Operation.objects.filter(Q(state=State.QUEUED) | left).order_by("created_at")
