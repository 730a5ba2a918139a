"""Runs one operation: write each target, verify by a fresh read, wait for pods that leave.

Re-entrant: a run that died is taken up by another, which finds what was done and goes on. Each
write is conditional on the version read, carries only our own delta, and is recorded once.
"""

from __future__ import annotations

from typing import Any
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
from gpuadmin.operations.kinds.base import Image, Ref
from gpuadmin.operations.models import FINAL_STATES, Operation, State, Step, Target
from gpuadmin.operations.progress import Progress

MAX_CONFLICTS = 5
LOOK_AGAIN_SECONDS = 3.0
# The API server may be away for a moment; whatever else it answers ends the target.
PASSING = (errors.Unreachable, errors.Busy, errors.ServerFault)


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
            if not self._still_as_confirmed():
                return None
            for target in self.targets:
                if target.state not in FINAL_STATES:
                    self._each(target, self._write)
            with self.claim.fenced(state=State.VERIFYING, message=""):
                pass
        for target in self.targets:
            if target.state == State.VERIFYING:
                self._each(target, self._verify)
        self.claim.free_locks()
        return self._leave()

    def _each(self, target: Target, work: Any) -> None:
        """One target's trouble is its own; passing trouble stops the run for now."""
        try:
            work(target, Ref(target.object_uid, target.object_name))
        except PASSING:
            raise
        except errors.Forbidden as error:
            told = "Our account may not do this; Set-up has the line that grants it."
            self._progress(target).fail(f"{told} {error}")
        except (TargetGone, errors.KubeError) as error:
            self._progress(target).fail(str(error))

    def _still_as_confirmed(self) -> bool:
        """Nobody dies whose name was not in the plan that was confirmed, however long it queued."""
        snapshot = self.kind.read(self.operation.cluster, self.client, self.parameters)
        plan = self.kind.plan(snapshot, self.parameters)
        known = {pod["uid"] for pod in self.operation.plan["pods_touched"] if pod["dies"]}
        more = [p for p in plan.pods_touched if p.dies and p.uid not in known]
        unsure = [told for told in plan.blockers if told not in plan.missing]
        if not more and not unsure:
            return True
        names = ", ".join(sorted(f"{pod.namespace}/{pod.name}" for pod in more))
        came = f"These pods came since the plan was confirmed and would be ended too: {names}."
        message = " ".join([*unsure, *([came] if more else [])])
        for target in self.targets:
            if target.state not in FINAL_STATES:
                self._progress(target).fail("Nothing was written: the plan no longer holds.")
        self.claim.finish(State.FAILED, message)
        return False

    def _write(self, target: Target, ref: Ref) -> None:
        """Check, act, check: N times against the version read, then visibly failed (C20)."""
        progress = self._progress(target)
        progress.start(Step.Name.WRITE, State.RUNNING)
        for _ in range(MAX_CONFLICTS):
            image = self.kind.look(self.client, ref)
            edit = self.kind.edit(self.parameters, ref, image)
            if edit.taints is None:
                self._nothing_to_write(progress, image, edit.message)
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
        """It is so already: by ourselves, in a run that died before it could say so, or not."""
        before = progress.target.before
        if before is not None and before["version"] != image.version:
            progress.wrote(image, "Written by an earlier run of this operation.")
        else:
            progress.found(image, message)

    def _verify(self, target: Target, ref: Ref) -> None:
        progress = self._progress(target)
        progress.start(Step.Name.VERIFY, State.VERIFYING)
        image = self.kind.look(self.client, ref)
        edit = self.kind.edit(self.parameters, ref, image)
        if edit.taints is not None:
            progress.fail("It was written, but a fresh read does not show it: somebody undid it.")
        else:
            progress.verified()

    def _leave(self) -> float | None:
        """Ends when the pods that were sent away are gone; the change itself is verified before."""
        still: list[str] = []
        for target in self.targets:
            step = target.steps.filter(name=Step.Name.LEAVE).first()
            if target.state == State.SUCCEEDED and step and step.state not in FINAL_STATES:
                progress = self._progress(target)
                progress.start(Step.Name.LEAVE, State.SUCCEEDED)
                still += progress.leaving(self._pods_leaving(target))
        if not still:
            self.claim.finish(*self._verdict())
            return None
        self.claim.pause(f"Verified. Still leaving: {', '.join(still)}.")
        return LOOK_AGAIN_SECONDS

    def _pods_leaving(self, target: Target) -> list[str]:
        ref = Ref(target.object_uid, target.object_name)
        try:
            return self.kind.leaving(self.client, ref, self.kind.look(self.client, ref))
        except TargetGone:
            return []

    def _verdict(self, note: str = "") -> tuple[State, str]:
        failed = [t for t in self.targets if t.state != State.SUCCEEDED]
        if failed:
            told = " ".join(f"{t.object_name}: {t.message}" for t in failed)
            return State.FAILED, f"{len(failed)} of {len(self.targets)} failed. {told}"
        wrote = sum(t.wrote for t in self.targets)
        done = f"Verified on {len(self.targets)}." if wrote else "Nothing had to be written."
        return State.SUCCEEDED, f"{done} {note}".strip()

    def _end_late(self) -> None:
        """At the time limit: what is verified counts, and pods that stay are named (not stuck)."""
        leaving = [name for target in self.targets for name in target.leaving]
        open_targets = [t for t in self.targets if t.state not in FINAL_STATES]
        if not open_targets:
            for target in self.targets:
                if target.leaving:
                    self._progress(target).give_up_waiting()
            note = f"Still there at the time limit: {', '.join(leaving)}." if leaving else ""
            self.claim.finish(*self._verdict(note))
            return
        for target in open_targets:
            self._progress(target).fail("The time limit came first.", State.STUCK)
        names = ", ".join(target.object_name for target in open_targets)
        last = f" Last: {self.operation.message}" if self.operation.message else ""
        self.claim.finish(State.STUCK, f"Not done within the time limit: {names}.{last}")

    def _progress(self, target: Target) -> Progress:
        return Progress(self.claim, target, self.actor)
