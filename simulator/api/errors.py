"""Refusals, in the words and the shape of a real kube-apiserver (metav1.Status)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

MOVED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)

REPLACED = "Precondition failed: UID in precondition differs from UID in object meta"


class ApiError(Exception):
    """One refusal. ``resource`` with its group, as in ``daemonsets.apps``."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str = "",
        resource: str = "",
        name: str = "",
        retry_after_seconds: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        phrase = "Invalid" if code == 422 else HTTPStatus(code).phrase.replace(" ", "")
        self.reason = reason or phrase
        plural, _, group = resource.partition(".")
        self.details: dict[str, Any] = {"name": name, "group": group, "kind": plural}
        self.headers: dict[str, str] = {}
        if retry_after_seconds:
            self.details["retryAfterSeconds"] = retry_after_seconds
            self.headers["Retry-After"] = str(retry_after_seconds)

    def status(self) -> dict[str, Any]:
        """The body that goes over the wire."""
        head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        said = {"message": self.message, "reason": self.reason, "details": self.details}
        return head | said | {"code": self.code}


def not_found(resource: str, name: str) -> ApiError:
    """404 of an object."""
    return ApiError(404, f'{resource} "{name}" not found', resource=resource, name=name)


def already_exists(resource: str, name: str) -> ApiError:
    """409 of a create."""
    message = f'{resource} "{name}" already exists'
    return ApiError(409, message, reason="AlreadyExists", resource=resource, name=name)


def conflict(resource: str, name: str, why: str) -> ApiError:
    """409 of a write on a version, or an object, that is no longer there."""
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return ApiError(409, message, resource=resource, name=name)


def invalid(kind: str, name: str, field: str, message: str) -> ApiError:
    """422 with one cause."""
    text = f'{kind} "{name}" is invalid: {field}: {message}'
    error = ApiError(422, text, reason="Invalid", resource=kind, name=name)
    error.details["causes"] = [{"reason": "FieldValueInvalid", "field": field, "message": message}]
    return error


def expired(requested: int, oldest: int) -> ApiError:
    """410: what lies between the requested version and the oldest kept one is forgotten."""
    return ApiError(410, f"too old resource version: {requested} ({oldest})", reason="Expired")
