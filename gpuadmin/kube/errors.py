"""The errors of the Kubernetes door. Nothing of urllib3 or of the kubernetes package leaks out."""

from __future__ import annotations


class KubeError(Exception):
    """An answer of the API that is no success, or no answer. ``sentence`` is for a person."""

    status: int | None = None

    def __init__(self, sentence: str, *, reason: str = "", status: int | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.reason = reason
        if status is not None:
            self.status = status


class BadConfig(KubeError):
    """The kubeconfig can't be used: missing, unreadable, or without the context asked for."""


class Unreachable(KubeError):
    """No answer: refused, timed out, reset, or a certificate that doesn't fit."""


class BadAnswer(KubeError):
    """An answer that is not what the API promises: cut, not JSON, or of another shape."""


class Unauthorized(KubeError):
    """401: the credentials are not, or no longer, good."""


class Forbidden(KubeError):
    """403: signed in, but not allowed; or refused by admission (quota, Pod Security)."""


class NotFound(KubeError):
    """404: no such object, or no such API."""


class Conflict(KubeError):
    """409: the object has changed since it was read, or exists already."""


class Gone(KubeError):
    """410: the resource version or continue token is too old; list again."""


class Invalid(KubeError):
    """422 or 400: the API server refuses the object or patch."""


class Busy(KubeError):
    """429 or 503: try again after ``retry_after_seconds``."""

    def __init__(
        self, sentence: str, *, retry_after_seconds: float, reason: str = "", status: int = 429
    ) -> None:
        super().__init__(sentence, reason=reason, status=status)
        self.retry_after_seconds = retry_after_seconds


class ServerFault(KubeError):
    """Any other 5xx."""
