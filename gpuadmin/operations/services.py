"""Preview, create, undo, cancel. Pages and API call these; every write and refusal is audited."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec
from django.db import IntegrityError, transaction
from django.utils import timezone

from gpuadmin.accounts.access import Refused, require
from gpuadmin.accounts.audit import Actor, Outcome, audit
from gpuadmin.accounts.roles import Permission, Role
from gpuadmin.fleet.models import Cluster
from gpuadmin.kube.client import KubeClient
from gpuadmin.operations import claims, errors
from gpuadmin.operations.clients import client_for
from gpuadmin.operations.kinds import kind_of
from gpuadmin.operations.kinds.base import Done, Ref
from gpuadmin.operations.models import Operation, Preview, State
from gpuadmin.operations.queries import good_undo, written_targets
from gpuadmin.operations.rights import with_rights
from gpuadmin.operations.store import Confirmation, Previewed, store, subject_of
from gpuadmin.planning.plan import Plan, difference

MAX_REASON = 500
SHORTEST_SECONDS, LONGEST_SECONDS = 60, 90 * 86400  # until a change is put back by itself
EXPIRY = "expiry"  # created_via of what is put back by itself
UNDONE = "This operation has been undone already, or its undo is under way."


def preview(
    actor: Actor, cluster: Cluster, kind: str, raw: object, *, client: KubeClient | None = None
) -> Previewed:
    """The change as it would be now, on a fresh snapshot; nothing is written to the cluster.

    Raises ``Refused``, ``UnknownKind``, ``BadParameters`` and ``KubeError``s.
    """
    change = kind_of(kind)
    require(actor, change.permission)
    parameters = change.parse(raw)
    client = client or client_for(cluster)
    snapshot = change.read(cluster, client, parameters)
    plan = with_rights(change.plan(snapshot, parameters), client, change.component)
    stored = _builtins(parameters)
    fingerprint = _fingerprint(kind, stored, plan)
    Preview.objects.update_or_create(
        fingerprint=fingerprint, defaults={"basis": plan.basis(), "made_at": timezone.now()}
    )
    return Previewed(plan, fingerprint, kind, stored)


def create(
    actor: Actor,
    cluster: Cluster,
    kind: str,
    raw: object,
    confirmation: Confirmation,
    *,
    undo_of: Operation | None = None,
    client: KubeClient | None = None,
) -> tuple[Operation, bool]:
    """The queued operation, and whether it is new (False: this key has made it before).

    Plans again on a fresh snapshot. Raises what ``preview`` raises, and ``SnapshotMoved``,
    ``Blocked``, ``KeyReused`` and ``NotNow``.
    """
    change = kind_of(kind)
    require(actor, change.permission)
    stored = _builtins(change.parse(raw))
    known = _known(actor, kind, stored, confirmation)
    if known is not None:
        return known, False
    shown = preview(actor, cluster, kind, raw, client=client)
    _check(shown, confirmation)
    try:
        with transaction.atomic():
            return store(actor, cluster, shown, confirmation, undo_of), True
    except IntegrityError as error:
        known = _known(actor, kind, stored, confirmation)
        if known is not None:  # the same request at the same moment
            return known, False
        if undo_of is None:
            raise
        raise errors.NotNow(UNDONE) from error


def preview_undo(
    actor: Actor, operation: Operation, *, client: KubeClient | None = None
) -> Previewed:
    """The preview of putting back what the operation wrote. Raises ``NotNow`` as well."""
    require(actor, kind_of(operation.kind).permission, subject_of(operation))
    if good_undo(operation) is not None:
        raise errors.NotNow(UNDONE)
    kind, raw = _undo_of(operation)
    return preview(actor, operation.cluster, kind, raw, client=client)


def undo(
    actor: Actor,
    operation: Operation,
    confirmation: Confirmation,
    *,
    client: KubeClient | None = None,
) -> tuple[Operation, bool]:
    """A new operation that puts back, where it still reads as we wrote it, what was there."""
    require(actor, kind_of(operation.kind).permission, subject_of(operation))
    undone, key = good_undo(operation), confirmation.idempotency_key
    if undone is not None and (key is None or undone.idempotency_key != key):
        raise errors.NotNow(UNDONE)
    kind, raw = _undo_of(operation)
    return create(
        actor, operation.cluster, kind, raw, confirmation, undo_of=operation, client=client
    )


def put_back(operation: Operation, *, client: KubeClient | None = None) -> Operation | None:
    """The undo of an operation whose time is over, in the name of who asked for it.

    None where there is nothing to put back, or a person has to decide: an undo that would end pods
    is not made unasked. ``undo_problem`` then says so. Raises ``KubeError``s, to come again.
    """
    actor = Actor(operation.created_by, Role.named(operation.created_role), EXPIRY)
    try:
        shown = preview_undo(actor, operation, client=client)
        if shown.plan.confirm.needed:
            raise errors.NotNow("It would end pods, so a person has to do it.")
        key = f"{EXPIRY}-{operation.pk}"
        confirmation = Confirmation(
            shown.fingerprint, f"Its time is over. {operation.reason}"[:MAX_REASON], "", key
        )
        made, _ = undo(actor, operation, confirmation, client=client)
    except errors.SnapshotMoved:  # between the two lines above; the next sweep looks again
        return None
    except (errors.OperationError, Refused) as error:
        told = "" if good_undo(operation) else f"It was not put back by itself. {error}"
        Operation.objects.filter(pk=operation.pk).update(undo_at=None, undo_problem=told)
        return None
    Operation.objects.filter(pk=operation.pk).update(undo_at=None)
    return made


def cancel(actor: Actor, operation: Operation) -> Operation:
    """Takes an operation out of the queue. Raises ``Refused``, and ``NotNow`` once it runs."""
    require(actor, Permission.CANCEL, subject_of(operation))
    with transaction.atomic():
        cancelled = Operation.objects.filter(pk=operation.pk, state=State.QUEUED).update(
            state=State.CANCELLED,
            finished_at=timezone.now(),
            message=f"Cancelled by {actor.name}; nothing was done.",
        )
        operation.refresh_from_db()
        if not cancelled:
            raise errors.NotNow(
                f"Only a queued operation can be cancelled; this one is {operation.state}."
            )
        audit(actor, Permission.CANCEL.key, Outcome.DONE, subject_of(operation))
        claims.nudge_waiting(operation)
    return operation


def _undo_of(operation: Operation) -> tuple[str, dict[str, Any]]:
    change = kind_of(operation.kind)
    done = [
        Done(Ref(t.object_uid, t.object_name), t.before["value"], t.after["value"])
        for t in written_targets(operation)
        if t.before is not None and t.after is not None
    ]
    found = change.undo(change.parse(operation.parameters), done)
    if found is None:
        raise errors.NotNow(
            "There is nothing to undo: only what an operation has written and verified is."
        )
    return found


def _known(
    actor: Actor, kind: str, parameters: dict[str, Any], confirmation: Confirmation
) -> Operation | None:
    if confirmation.idempotency_key is None:
        return None
    known = Operation.objects.filter(
        created_by=actor.user, idempotency_key=confirmation.idempotency_key
    ).first()
    if known is None:
        return None
    asked = (kind, parameters, confirmation.fingerprint, confirmation.reason.strip())
    timed = (confirmation.undo_after_seconds is not None) == (known.undo_at is not None)
    if not timed or asked != (known.kind, known.parameters, known.fingerprint, known.reason):
        raise errors.KeyReused(
            "This idempotency key was used for another request: send a new key with a new request."
        )
    return known


def _check(shown: Previewed, confirmation: Confirmation) -> None:
    plan, reason = shown.plan, confirmation.reason.strip()
    if plan.blockers:
        raise errors.Blocked(plan.blockers)
    if confirmation.fingerprint != shown.fingerprint:
        raise errors.SnapshotMoved(_moved(shown, confirmation.fingerprint))
    if not 1 <= len(reason) <= MAX_REASON:
        raise errors.BadParameters({"reason": f"A reason of 1 to {MAX_REASON} characters."})
    lasts = confirmation.undo_after_seconds
    if lasts is not None and not SHORTEST_SECONDS <= lasts <= LONGEST_SECONDS:
        raise errors.BadParameters({"undo_after_seconds": "From a minute to 90 days."})
    if plan.confirm.needed and confirmation.typed != plan.confirm.phrase:
        raise errors.BadParameters(
            {"confirm": f"Pods will be ended: type “{plan.confirm.phrase}”."}
        )


def _moved(shown: Previewed, fingerprint: str) -> list[str]:
    before = Preview.objects.filter(fingerprint=fingerprint).first()
    if before is None:
        return ["There is no such preview, or it is more than an hour old: look at it again."]
    told = difference(before.basis, shown.plan.basis())
    return told or ["It was a preview of another change."]


def _fingerprint(kind: str, parameters: dict[str, Any], plan: Plan) -> str:
    """Of what the plan stands on; never of a resourceVersion, which each status write moves."""
    standing = {"kind": kind, "parameters": parameters, **plan.basis()}
    text = json.dumps(standing, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _builtins(parameters: Any) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(parameters)
    return built
