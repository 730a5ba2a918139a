"""Refusals, in the words and the shape of a real kube-apiserver (metav1.Status)."""

from __future__ import annotations

from typing import Any

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    501: "NotImplemented",
}


class ApiError(Exception):
    """One refusal. ``causes`` are (field, message) pairs of a 422."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        details: dict[str, Any] | None = None,
        causes: list[tuple[str, str]] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or REASONS[code]
        self.details = dict(details or {})
        if causes:
            self.details["causes"] = [
                {"reason": "FieldValueInvalid", "field": field, "message": text}
                for field, text in causes
            ]

    def status(self) -> dict[str, Any]:
        """The body that goes over the wire."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }


def not_found(resource: str, name: str) -> ApiError:
    """``nodes "x" not found``; resource with its group, as in ``daemonsets.apps``."""
    plural, _, group = resource.partition(".")
    details = {"name": name, "group": group, "kind": plural}
    return ApiError(404, f'{resource} "{name}" not found', details=details)


def already_exists(resource: str, name: str) -> ApiError:
    """409 of a create."""
    plural, _, group = resource.partition(".")
    details = {"name": name, "group": group, "kind": plural}
    message = f'{resource} "{name}" already exists'
    return ApiError(409, message, reason="AlreadyExists", details=details)


def conflict(resource: str, name: str, why: str) -> ApiError:
    """409 of a write on a version, or an object, that is no longer there."""
    plural, _, group = resource.partition(".")
    details = {"name": name, "group": group, "kind": plural}
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return ApiError(409, message, details=details)


MOVED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def invalid(kind: str, name: str, field: str, message: str) -> ApiError:
    """422 with one cause."""
    text = f'{kind} "{name}" is invalid: {field}: {message}'
    details = {"name": name, "kind": kind}
    return ApiError(422, text, details=details, causes=[(field, message)])


def expired(requested: int, oldest: int) -> ApiError:
    """410: what lies between the requested version and the oldest kept one is forgotten."""
    return ApiError(410, f"too old resource version: {requested} ({oldest})")
