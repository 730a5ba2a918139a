"""Why a change is not made. Each error's ``str()`` is a sentence for the person who asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class OperationError(Exception):
    """What was asked is not done, and nothing was written to the cluster."""


class BadParameters(OperationError):
    """``fields``: name → sentence. Also for a missing reason or a wrong confirmation."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__(" ".join(f"{name}: {sentence}" for name, sentence in fields.items()))
        self.fields = dict(fields)


class UnknownKind(OperationError):
    """There is no change of this name."""


class Blocked(OperationError):
    """The plan has blockers."""

    def __init__(self, blockers: Sequence[str]) -> None:
        super().__init__(" ".join(blockers))
        self.blockers = list(blockers)


class SnapshotMoved(OperationError):
    """What the previewed plan stood on has changed: ``difference`` says how, in sentences."""

    def __init__(self, difference: Sequence[str]) -> None:
        super().__init__("The cluster has changed since this preview. " + " ".join(difference))
        self.difference = list(difference)


class KeyReused(OperationError):
    """The idempotency key belongs to another request of the same user."""


class NotNow(OperationError):
    """The operation's state does not allow it, such as to cancel one that runs."""


class TargetGone(Exception):
    """The object of this uid is no longer there; another one may bear its name (C40)."""
