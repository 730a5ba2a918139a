"""Who may work on an operation: compare-and-set with lease, fence and locks, all in PostgreSQL.

A claim is lost when its lease ran out and another worker took over; every write of the first one
then fails. Locks are held from the claim until nothing more will be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from gpuadmin.operations import nudge
from gpuadmin.operations.models import ACTIVE_STATES, Lock, Operation, State
from gpuadmin.operations.queries import rivals

RUN_LIMIT = timedelta(minutes=10)
Clock = Callable[[], datetime]
_QUEUE_LOCK = 0x6770_7561  # one number for our advisory locks; the other is the cluster


class Lost(Exception):
    """Another worker has taken over, or the operation has ended: stop and write nothing."""


@dataclass(frozen=True)
class Claim:
    """The right to work on one operation until the lease ends; each write renews it."""

    operation: Operation
    fence: int
    clock: Clock

    @contextmanager
    def fenced(self, **columns: Any) -> Iterator[None]:
        """A transaction that only the present holder gets through. Raises ``Lost``."""
        with transaction.atomic():
            held = Operation.objects.filter(
                pk=self.operation.pk, fence=self.fence, state__in=ACTIVE_STATES
            ).update(lease_until=self.clock() + _lease(), **columns)
            if not held:
                raise Lost
            yield
        for name, value in columns.items():
            setattr(self.operation, name, value)

    def keep(self) -> None:
        """Renews the lease. Raises ``Lost``."""
        with self.fenced():
            pass

    def pause(self, message: str) -> None:
        """Gives the work back for now; whoever comes next goes on with it."""
        with self.fenced(message=message):
            Operation.objects.filter(pk=self.operation.pk).update(lease_until=self.clock())

    def free_locks(self) -> None:
        """Lets those in that wait for our objects: nothing more is written."""
        with self.fenced():
            _release(self.operation)

    def finish(self, state: State, message: str) -> None:
        """Ends the operation and frees its locks."""
        ended = {"state": state, "message": message, "finished_at": self.clock()}
        with self.fenced(**ended):
            _release(self.operation)


def take(operation_id: UUID, worker: str, clock: Clock) -> Claim | None:
    """The claim, or None where there is nothing to do: ended, being worked on, or has to wait."""
    with transaction.atomic():
        operation = Operation.objects.select_for_update().filter(pk=operation_id).first()
        if operation is None or operation.is_final:
            return None
        now = clock()
        if operation.lease_until is not None and operation.lease_until > now:
            return None
        if operation.state == State.QUEUED and not _enter(operation, now):
            return None
        operation.fence += 1
        operation.worker = worker
        operation.lease_until = now + _lease()
        operation.save()
        return Claim(operation, operation.fence, clock)


def _enter(operation: Operation, now: datetime) -> bool:
    """From the queue to running with all locks, or not at all."""
    if operation.expires_at <= now:
        operation.state, operation.finished_at = State.CANCELLED, now
        operation.message = "It could not start in time, so nothing was done."
        operation.save()
        return False
    with connection.cursor() as cursor:  # claims of one cluster enter one after another
        cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, %s)", [_QUEUE_LOCK, operation.cluster_id % 2**31]
        )
    rival = rivals(operation).order_by("created_at").first()
    if rival is not None:
        operation.message = f"Waits for “{rival.title}”."
        operation.save(update_fields=["message"])
        return False
    Lock.objects.bulk_create(
        Lock(cluster_id=operation.cluster_id, object_key=key, operation=operation)
        for key in operation.lock_keys
    )
    operation.state, operation.message = State.RUNNING, ""
    operation.started_at, operation.expires_at = now, now + RUN_LIMIT
    return True


def nudge_waiting(operation: Operation) -> None:
    """Nudges those in the queue that stand at one of the operation's objects."""
    waiting = Operation.objects.filter(
        cluster=operation.cluster_id, state=State.QUEUED, lock_keys__overlap=operation.lock_keys
    )
    for waiting_id in waiting.order_by("created_at").values_list("pk", flat=True):
        nudge.send_on_commit(waiting_id)


def _release(operation: Operation) -> None:
    """Gives the locks back, once, and lets the next ones in."""
    freed, _ = operation.locks.all().delete()
    if freed:
        nudge_waiting(operation)


def _lease() -> timedelta:
    return timedelta(seconds=settings.OPERATION_LEASE_SECONDS)
