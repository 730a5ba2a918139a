"""A change in lists, and its steps while it runs and afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from gpuadmin.operations.models import FINAL_STATES, Operation, Step, Target
from gpuadmin.operations.models import State as Is
from gpuadmin.operations.services import EXPIRY
from gpuadmin.planning.edits import Value
from gpuadmin.planning.words import words
from gpuadmin.web.pictures import states
from gpuadmin.web.pictures.states import State
from gpuadmin.web.pictures.text import and_list, plain

STATES = {
    Is.PLANNED: State(states.FINE, "todo", "t3", "planned"),
    Is.QUEUED: State(states.FINE, "wait", "wait", "queued"),
    Is.RUNNING: State(states.FINE, "run", "busy", "running"),
    Is.VERIFYING: State(states.FINE, "run", "busy", "verifying"),
    Is.SUCCEEDED: State(states.FINE, "ok", "ok", "succeeded"),
    Is.FAILED: State(states.CRITICAL, "crit", "crit", "failed"),
    Is.STUCK: State(states.CRITICAL, "crit", "crit", "stuck"),
    Is.CANCELLED: State(states.IDLE, "cordon", "t3", "cancelled"),
}
STEP_CSS = {
    Is.RUNNING: "now",
    Is.VERIFYING: "now",
    Is.FAILED: "bad",
    Is.STUCK: "bad",
    Is.QUEUED: "todo",
    Is.PLANNED: "todo",
    Is.CANCELLED: "todo",
}


@dataclass(frozen=True)
class Change:
    """An operation in a list. ``step`` counts from 1."""

    id: UUID
    title: str
    state: State
    says: str
    who: str
    since: datetime
    finished: datetime | None
    via: str
    reason: str
    targets: str
    step: int
    steps: int
    undone: bool  # an undo of it has succeeded

    @property
    def percent(self) -> int:
        return round(100 * self.step / self.steps) if self.steps else 0


@dataclass(frozen=True)
class StepLine:
    title: str
    state: State
    css: str
    started: datetime | None
    finished: datetime | None
    log: list[tuple[str, str]]  # time of day, text

    @property
    def took(self) -> str:
        """``0.4 s``; empty while it runs."""
        if self.started is None or self.finished is None:
            return ""
        return f"{(self.finished - self.started).total_seconds():.1f} s"


@dataclass(frozen=True)
class Diff:
    """What a change writes, before and after, as text."""

    kept: list[str]
    added: list[str]
    removed: list[str]

    @property
    def nothing(self) -> bool:
        return not self.added and not self.removed


@dataclass(frozen=True)
class TargetPicture:
    name: str
    state: State
    message: str
    steps: list[StepLine]
    diff: Diff | None
    leaving: list[str]
    reversed_at: datetime | None

    @property
    def written(self) -> bool:
        return self.diff is not None and not self.diff.nothing


@dataclass(frozen=True)
class Rung:
    """One word of the rail: ``done``, ``current`` or to come."""

    words: str
    done: bool
    current: bool


def title(operation: Operation) -> str:
    """What it changes, as its plan says."""
    return plain(operation.title)


def change(operation: Operation) -> Change:
    """A row; wants targets and their steps prefetched."""
    targets = list(operation.targets.all())
    steps = [step for target in targets for step in target.steps.all()]
    done = sum(step.state in FINAL_STATES for step in steps)
    return Change(
        id=operation.id,
        title=title(operation),
        state=STATES[Is(operation.state)],
        says=plain(operation.message) or STATES[Is(operation.state)].words,
        who=operation.created_by.get_username(),
        since=operation.created_at,
        finished=operation.finished_at,
        via=_via(operation.created_via),
        reason=operation.reason,
        targets=and_list(target.object_name for target in targets),
        step=min(done + 1, len(steps)),
        steps=len(steps),
        undone=any(undo.state == Is.SUCCEEDED for undo in operation.undos.all()),
    )


def _via(created_via: str) -> str:
    """``session``, ``expiry`` or ``token:<name>``, in words."""
    kind, _, name = created_via.partition(":")
    if kind == EXPIRY:
        return "and made by itself when its time was over"
    return f"by the token {plain(name)}" if kind == "token" else "on these pages"


@dataclass(frozen=True)
class Standing:
    """A change of ours that lasts on an object."""

    id: UUID
    title: str
    who: str
    since: datetime
    reason: str
    until: datetime | None
    reversed_at: datetime | None


def standing(found: Iterable[tuple[Operation, Target]]) -> list[Standing]:
    """Those that close something or were changed back; what only opened a node needs no note."""
    return [
        Standing(
            operation.id,
            title(operation),
            operation.created_by.get_username(),
            operation.created_at,
            operation.reason,
            operation.undo_at,
            target.reversed_at,
        )
        for operation, target in found
        if target.reversed_at or operation.kind in ("taint.add", "node.cordon")
    ]


def changes(operations: Iterable[Operation]) -> list[Change]:
    return [change(operation) for operation in operations]


def targets(operation: Operation) -> list[TargetPicture]:
    """Every object with its steps and, once written, what changed."""
    return [_target(target) for target in operation.targets.all()]


def ended(operation: Operation) -> list[dict[str, str]]:
    """Pods that the confirmed plan ends, as it named them."""
    keys = ("name", "namespace", "node", "owner", "effect")
    pods = [pod for pod in operation.plan.get("pods_touched", []) if pod.get("dies")]
    return [{key: plain(str(pod.get(key, ""))) for key in keys} for pod in pods]


def kubectl(operation: Operation) -> str:
    """The plan's equivalent commands, one a line."""
    return plain("\n".join(operation.plan.get("kubectl", [])))


def _target(target: Target) -> TargetPicture:
    """What is written is not yet so: a target whose steps go on is being verified."""
    before, after = target.before, target.after
    goes_on = any(step.state not in FINAL_STATES for step in target.steps.all())
    written = target.state == Is.SUCCEEDED
    changed = diff(before["value"], after["value"]) if before and after else None
    told = written and changed is not None and not changed.nothing
    return TargetPicture(
        name=target.object_name,
        state=STATES[Is.VERIFYING if written and goes_on else Is(target.state)],
        message="" if told else plain(target.message),
        steps=[_step(step) for step in target.steps.all()],
        diff=changed,
        leaving=[plain(name) for name in target.leaving],
        reversed_at=target.reversed_at,
    )


def _step(step: Step) -> StepLine:
    return StepLine(
        title=step.title,
        state=STATES[Is(step.state)],
        css=STEP_CSS.get(Is(step.state), ""),
        started=step.started_at,
        finished=step.finished_at,
        log=[(str(line.get("at", ""))[11:19], plain(str(line.get("text")))) for line in step.log],
    )


def diff(before: Value, after: Value) -> Diff:
    """Two values of what a change writes, such as taint lists as the API gives them."""
    was, now = [plain(t) for t in words(before)], [plain(t) for t in words(after)]
    return Diff(
        kept=[t for t in was if t in now],
        added=[t for t in now if t not in was],
        removed=[t for t in was if t not in now],
    )


def rail(stage: str) -> list[Rung]:
    """Choose, preview, confirm, run, verified: ``stage`` is the current one."""
    words = ["Choose", "Preview", "Confirm", "Run", "Verified"]
    place = words.index(stage)
    return [Rung(word, n < place, n == place) for n, word in enumerate(words)]


def stage(operation: Operation) -> str:
    """Where on the rail an operation stands."""
    return "Verified" if operation.state == Is.SUCCEEDED else "Run"
