"""Runs one operation: write each target, verify by a fresh read, wait for pods that leave.

Re-entrant: a run that died is taken up by another, which finds what was done and goes on. Each
write is conditional on the version read, carries only our own delta, and is recorded once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from uuid import UUID

from django.utils import timezone

from gpuadmin.accounts.audit import Actor
from gpuadmin.accounts.roles import Role
from gpuadmin.kube import errors
from gpuadmin.kube.client import KubeClient
from gpuadmin.operations import claims
from gpuadmin.operations.clients import client_for
from gpuadmin.operations.errors import TargetGone
from gpuadmin.operations.kinds import kind_of
from gpuadmin.operations.kinds.base import FIELD_MANAGER, Image, Ref
from gpuadmin.operations.models import FINAL_STATES, Operation, State, Step, Target
from gpuadmin.operations.progress import Progress

MAX_CONFLICTS = 5
LOOK_AGAIN_SECONDS = 3.0
# The API server may be away for a moment, or its answer be cut, which leaves open whether a write
# landed: we look again. Whatever else it answers ends the target.
PASSING = (errors.Unreachable, errors.Busy, errors.ServerFault, errors.BadAnswer)


def run(
    operation_id: UUID,
    *,
    worker: str,
    client: KubeClient | None = None,
    clock: claims.Clock = timezone.now,
) -> float | None:
    """Takes the operation as far as it goes now.

    Returns the seconds after which to come again, or None where it ended, is being run by another
    worker, or waits for a lock (whoever frees that one nudges it).
    """
    claim = claims.take(operation_id, worker, clock)
    if claim is None:
        return None
    try:
        return _Run(claim, client or client_for(claim.operation.cluster)).go()
    except PASSING as error:
        claim.pause(f"Tries again: {error}")
        return max(LOOK_AGAIN_SECONDS, getattr(error, "retry_after_seconds", 0.0))
    except errors.KubeError as error:
        claim.finish(State.FAILED, str(error))
        return None
    except claims.Lost:
        return None


class _Run:
    """One stay of one worker at one operation."""

    def __init__(self, claim: claims.Claim, client: KubeClient) -> None:
        self.claim, self.client = claim, client
        self.operation: Operation = claim.operation
        self.kind = kind_of(self.operation.kind)
        self.parameters = self.kind.parse(self.operation.parameters)
        self.targets = list(self.operation.targets.prefetch_related("steps"))
        self.actor = Actor(
            self.operation.created_by,
            Role.named(self.operation.created_role),
            self.operation.created_via,
        )

    def go(self) -> float | None:
        if self.claim.clock() >= self.operation.expires_at:
            self._end_late()
            return None
        if self.operation.state == State.RUNNING:
            self._write_all()
        for target in self.targets:
            if target.state == State.VERIFYING:
                self._each(target, self._verify)
        self.claim.free_locks()
        return self._leave()

    def _write_all(self) -> None:
        """What an earlier run has written waits to be verified: each write is told once."""
        waiting = [t for t in self.targets if t.state in (State.PLANNED, State.RUNNING)]
        objection = self._objection() if waiting else ""
        for target in waiting:
            self._each(target, partial(self._write, objection=objection))
        with self.claim.fenced(state=State.VERIFYING, message=""):
            pass

    def _each(self, target: Target, work: Callable[[Target, Ref], None]) -> None:
        """One target's trouble is its own; passing trouble stops the run for now."""
        try:
            work(target, Ref(target.object_uid, target.object_name))
        except PASSING:
            raise
        except (TargetGone, errors.KubeError) as error:
            self._progress(target).fail(_told(error))

    def _objection(self) -> str:
        """Why the plan no longer holds that was confirmed, however long it queued; "" when it does.

        Nobody dies whose name was not in it.
        """
        try:
            snapshot = self.kind.read(self.operation.cluster, self.client, self.parameters)
        except PASSING:
            raise
        except errors.KubeError as error:
            return f"What it would do now cannot be told. {_told(error)}"
        plan = self.kind.plan(snapshot, self.parameters)
        known = {pod["uid"] for pod in self.operation.plan["pods_touched"] if pod["dies"]}
        more = [p for p in plan.pods_touched if p.dies and p.uid not in known]
        unsure = [told for told in plan.blockers if told not in plan.missing]
        names = ", ".join(sorted(f"{pod.namespace}/{pod.name}" for pod in more))
        came = f"These pods came since the plan was confirmed and would be ended too: {names}."
        return " ".join([*unsure, *([came] if more else [])])

    def _write(self, target: Target, ref: Ref, objection: str) -> None:
        """Check, act, check: N times against the version read, then visibly failed (C20)."""
        progress = self._progress(target)
        progress.start(Step.Name.WRITE, State.RUNNING)
        for _ in range(MAX_CONFLICTS):
            image = self.kind.look(self.client, ref)
            edit = self.kind.edit(self.parameters, ref, image)
            if edit.value is None:
                self._nothing_to_write(progress, image, edit.message)
                return
            if objection:
                progress.fail(f"Nothing was written. {objection}")
                return
            progress.intend(image)
            try:
                after = self.kind.write(self.client, ref, image, edit)
            except errors.Conflict:
                progress.conflict()
                continue
            progress.wrote(after, edit.message)
            return
        progress.fail(
            f"Nothing was written: {MAX_CONFLICTS} times in a row somebody else changed "
            f"{ref.name} between our read and our write."
        )

    def _nothing_to_write(self, progress: Progress, image: Image, message: str) -> None:
        """It is so already. Where we sent a write and never had its answer, the API server's word
        on who made the last change tells whether it is ours; a lock keeps our other changes away.
        """
        if progress.target.before is None:
            progress.found(image, message)
        elif image.writer == FIELD_MANAGER:
            progress.wrote(image, "Written by an earlier run of this operation.")
        else:
            progress.found_unsigned(image)

    def _verify(self, target: Target, ref: Ref) -> None:
        progress = self._progress(target)
        progress.start(Step.Name.VERIFY, State.VERIFYING)
        image = self.kind.look(self.client, ref)
        edit = self.kind.edit(self.parameters, ref, image)
        if edit.value is not None:
            progress.fail("It was written, but a fresh read does not show it: somebody undid it.")
        else:
            progress.verified()

    def _leave(self) -> float | None:
        """Ends when the pods that were sent away are gone; the change itself is verified before."""
        still: list[str] = []
        for target in self._still_left():
            progress = self._progress(target)
            progress.start(Step.Name.LEAVE, State.SUCCEEDED)
            try:
                still += progress.leaving(self._pods_leaving(target))
            except PASSING:
                raise
            except errors.KubeError as error:
                told = f"Whether the pods of {target.object_name} have left is not known."
                progress.give_up_waiting(f"{told} {_told(error)}")
        if not still:
            self.claim.finish(*self._verdict())
            return None
        self.claim.pause(f"Verified. Still leaving: {', '.join(still)}.")
        return LOOK_AGAIN_SECONDS

    def _still_left(self) -> list[Target]:
        """Verified targets whose pods we wait for."""
        waits = Step.objects.filter(name=Step.Name.LEAVE, target__operation=self.operation)
        waiting = set(waits.exclude(state__in=FINAL_STATES).values_list("target_id", flat=True))
        return [t for t in self.targets if t.state == State.SUCCEEDED and t.pk in waiting]

    def _pods_leaving(self, target: Target) -> list[str]:
        ref = Ref(target.object_uid, target.object_name)
        try:
            return self.kind.leaving(self.client, ref, self.kind.look(self.client, ref))
        except TargetGone:
            return []

    def _verdict(self) -> tuple[State, str]:
        failed = [t for t in self.targets if t.state != State.SUCCEEDED]
        if failed:
            return State.FAILED, f"{len(failed)} of {len(self.targets)} failed. {_reasons(failed)}"
        wrote = sum(t.wrote for t in self.targets)
        done = f"Verified on {len(self.targets)}." if wrote else "Nothing had to be written."
        given_up = Step.objects.filter(
            name=Step.Name.LEAVE, state=State.STUCK, target__operation=self.operation
        )
        notes = [step.log[-1]["text"] for step in given_up.order_by("target__position")]
        return State.SUCCEEDED, " ".join([done, *notes])

    def _end_late(self) -> None:
        """At the time limit: what is verified counts, and pods that stay are named (not stuck)."""
        open_targets = [t for t in self.targets if t.state not in FINAL_STATES]
        if not open_targets:
            for target in self._still_left():
                names = ", ".join(target.leaving) or "whoever was on it; nobody could look"
                told = f"Still there at the time limit: {names}."
                self._progress(target).give_up_waiting(told)
            self.claim.finish(*self._verdict())
            return
        for target in open_targets:
            self._progress(target).fail("The time limit came first.", State.STUCK)
        names = ", ".join(target.object_name for target in open_targets)
        last = f" Last: {self.operation.message}" if self.operation.message else ""
        self.claim.finish(State.STUCK, f"Not done within the time limit: {names}.{last}")

    def _progress(self, target: Target) -> Progress:
        return Progress(self.claim, target, self.actor)


def _told(error: TargetGone | errors.KubeError) -> str:
    if isinstance(error, errors.Forbidden):
        return f"Our account may not do this; Set-up has the line that grants it. {error}"
    return str(error)


def _reasons(failed: Iterable[Target]) -> str:
    """Each message once, after the names of the targets that have it."""
    names: dict[str, list[str]] = defaultdict(list)
    for target in failed:
        names[target.message].append(target.object_name)
    return " ".join(f"{', '.join(those)}: {message}" for message, those in names.items())
