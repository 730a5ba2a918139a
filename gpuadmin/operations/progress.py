"""What a run writes into the rows of one target, each time under the claim's fence."""

from __future__ import annotations

from dataclasses import dataclass

from gpuadmin.accounts.audit import Actor, Outcome, Subject, audit
from gpuadmin.operations.claims import Claim
from gpuadmin.operations.kinds.base import Image
from gpuadmin.operations.models import State, Step, Target


@dataclass(frozen=True)
class Progress:
    """One target on its way. All methods raise ``claims.Lost`` when another worker took over."""

    claim: Claim
    target: Target
    actor: Actor

    def start(self, name: Step.Name, state: State) -> None:
        """The step begins, or goes on after a run that died."""
        with self.claim.fenced():
            self.target.state = state
            self.target.save(update_fields=["state"])
            step = self._step(name)
            if step is not None and step.started_at is None:
                step.started_at, step.state = self.claim.clock(), State.RUNNING
                step.save()

    def intend(self, image: Image) -> None:
        """Stored ahead of the write, so that a later run knows its own work again."""
        self._save(before=image.stored())

    def conflict(self) -> None:
        """Our write did not land: somebody was faster."""
        with self.claim.fenced():
            self.target.before = None
            self.target.save(update_fields=["before"])
            self._log(Step.Name.WRITE, "Somebody else wrote first: read again.")

    def wrote(self, after: Image, message: str) -> None:
        """Written, with one audit row that holds the lists before and after (C20)."""
        with self.claim.fenced():
            self._set(after=after.stored(), wrote=True, message=message, state=State.VERIFYING)
            self._end(Step.Name.WRITE, State.SUCCEEDED, message)
            before = self.target.before["value"] if self.target.before else None
            self._audit(Outcome.DONE, {"before": before, "after": after.value})

    def found(self, image: Image, message: str) -> None:
        """Already so: nothing is written."""
        with self.claim.fenced():
            same = image.stored()
            self._set(before=same, after=same, message=message, state=State.VERIFYING)
            self._end(Step.Name.WRITE, State.SUCCEEDED, message)

    def found_unsigned(self, image: Image) -> None:
        """So by now, after a write whose answer never came; nobody can say that it is ours."""
        told = (
            "It is so now. We sent a write and had no answer, and the cluster does not name us as "
            "the last writer: it counts as somebody else's, and an undo leaves it alone."
        )
        with self.claim.fenced():
            self.found(image, told)
            self._audit(Outcome.FAILED, {"message": told})

    def verified(self) -> None:
        """A read that the write did not produce shows what was wished."""
        with self.claim.fenced():
            self._set(state=State.SUCCEEDED)
            self._end(Step.Name.VERIFY, State.SUCCEEDED, "A fresh read shows it.")

    def leaving(self, pods: list[str]) -> list[str]:
        """Notes who is still there, and gives it back."""
        with self.claim.fenced():
            self._set(leaving=pods)
            if not pods:
                self._end(Step.Name.LEAVE, State.SUCCEEDED, "All are gone.")
        return pods

    def give_up_waiting(self, told: str) -> None:
        """Nobody waits for its pods any longer."""
        with self.claim.fenced():
            self._end(Step.Name.LEAVE, State.STUCK, told)

    def fail(self, message: str, state: State = State.FAILED) -> None:
        """The target ends here; so does the step that it is in."""
        with self.claim.fenced():
            self._set(message=message, state=state)
            for name in (Step.Name.WRITE, Step.Name.VERIFY):
                step = self._step(name)
                if step is not None and step.state == State.RUNNING:
                    self._end(name, state, message)
            self._audit(Outcome.FAILED, {"message": message})

    def _set(self, **columns: object) -> None:
        for name, value in columns.items():
            setattr(self.target, name, value)
        self.target.save(update_fields=list(columns))

    def _save(self, **columns: object) -> None:
        with self.claim.fenced():
            self._set(**columns)

    def _step(self, name: Step.Name) -> Step | None:
        return self.target.steps.filter(name=name).first()

    def _log(self, name: Step.Name, text: str) -> None:
        step = self._step(name)
        if step is not None:
            step.log = [*step.log, {"at": self.claim.clock().isoformat(), "text": text}]
            step.save(update_fields=["log"])

    def _end(self, name: Step.Name, state: State, text: str) -> None:
        self._log(name, text)
        Step.objects.filter(target=self.target, name=name).update(
            state=state, finished_at=self.claim.clock()
        )

    def _audit(self, outcome: Outcome, detail: dict[str, object]) -> None:
        operation, target = self.claim.operation, self.target
        audit(
            self.actor,
            operation.kind,
            outcome,
            Subject(target.object_kind, target.object_uid, target.object_name),
            reason=operation.reason,
            detail={"operation": str(operation.pk), **detail},
        )
