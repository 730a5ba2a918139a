"""From a confirmed plan to the rows that a worker takes up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from gpuadmin.accounts.audit import Actor, Outcome, Subject, audit
from gpuadmin.fleet.models import Cluster
from gpuadmin.operations import nudge
from gpuadmin.operations.kinds import kind_of
from gpuadmin.operations.models import Operation, Step, Target
from gpuadmin.planning.plan import Plan, TargetPlan

QUEUE_LIMIT = timedelta(hours=1)
STEP_TITLES = {
    Step.Name.WRITE: "Read {name} again and write",
    Step.Name.VERIFY: "Read {name} back",
    Step.Name.LEAVE: "Pods leave {name}",
}


@dataclass(frozen=True)
class Previewed:
    """A plan, and the fingerprint that confirms it."""

    plan: Plan
    fingerprint: str
    kind: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Confirmation:
    """What a person gives to have a previewed change made.

    ``typed`` is the plan's phrase, where it asks for one. The same ``idempotency_key`` again gives
    the same operation. ``undo_after_seconds``: when to put everything back; None: never.
    """

    fingerprint: str
    reason: str
    typed: str = ""
    idempotency_key: str | None = None
    undo_after_seconds: int | None = None


def subject_of(operation: Operation) -> Subject:
    """The operation as the object of an audit row."""
    return Subject("operation", str(operation.pk), operation.title)


def store(
    actor: Actor,
    cluster: Cluster,
    shown: Previewed,
    confirmation: Confirmation,
    undo_of: Operation | None,
) -> Operation:
    """The queued operation with targets and steps, its audit row, and the nudge on commit."""
    if actor.user is None:
        raise ValueError("an operation is asked for by a user")
    kind = kind_of(shown.kind)
    now, lasts = timezone.now(), confirmation.undo_after_seconds
    operation = Operation.objects.create(
        cluster=cluster,
        kind=shown.kind,
        parameters=shown.parameters,
        plan=shown.plan.json(),
        fingerprint=shown.fingerprint,
        lock_keys=[f"{kind.object_kind}/{target.uid}" for target in shown.plan.targets],
        reason=confirmation.reason.strip(),
        created_by=actor.user,
        created_via=actor.via,
        created_role=actor.role.label,
        idempotency_key=confirmation.idempotency_key,
        undo_of=undo_of,
        expires_at=now + QUEUE_LIMIT,
        undo_at=None if lasts is None else now + timedelta(seconds=lasts),
    )
    for position, target in enumerate(shown.plan.targets):
        _store_target(operation, position, target, shown.plan)
    detail = {"title": operation.title, "undo_of": str(undo_of.pk) if undo_of else None}
    audit(
        actor,
        "operation.create",
        Outcome.DONE,
        subject_of(operation),
        reason=operation.reason,
        detail=detail,
    )
    nudge.send_on_commit(operation.pk)
    return operation


def _store_target(operation: Operation, position: int, target: TargetPlan, plan: Plan) -> None:
    row = Target.objects.create(
        operation=operation,
        position=position,
        object_kind=target.kind,
        object_uid=target.uid,
        object_name=target.name,
    )
    sends_away = any(
        pod.effect == "evicted now" and pod.node == target.name for pod in plan.pods_touched
    )
    names = [name for name in STEP_TITLES if sends_away or name is not Step.Name.LEAVE]
    Step.objects.bulk_create(
        Step(
            target=row, position=place, name=name, title=STEP_TITLES[name].format(name=target.name)
        )
        for place, name in enumerate(names)
    )
