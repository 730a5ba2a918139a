"""Every error as application/problem+json (RFC 9457): type, title, status, detail, and more."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from gpuadmin.accounts.access import Refused
from gpuadmin.accounts.services import AccountError
from gpuadmin.kube import errors as kube
from gpuadmin.operations import errors as operations

CONTENT_TYPE = "application/problem+json"
OUR_FAULT = "Something went wrong on our side; the web log says what."
DATABASE_AWAY = "The database does not answer at the moment: try again in a few seconds."
RETRY = {"Retry-After": "5"}
log = logging.getLogger(__name__)


class Missing(Http404):
    """What was asked for by name or uid is not there; ``str()`` says where to look for others."""


def problem(
    status: int,
    detail: str,
    *,
    kind: str = "",
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    """One problem as an answer; the rest as for ``body_of``."""
    body = body_of(status, detail, kind=kind, **more)
    return Response(body, status=status, content_type=CONTENT_TYPE, headers=dict(headers or {}))


def body_of(status: int, detail: str, *, kind: str = "", **more: Any) -> dict[str, Any]:
    """One problem. ``kind`` names it for programs; ``more`` are its own members."""
    return {
        "type": f"urn:gpuadmin:{kind}" if kind else "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **more,
    }


def handler(error: Exception, context: dict[str, Any]) -> Response:
    """REST framework's exception handler: no error leaves in another form."""
    set_rollback()
    match error:
        case Refused():
            answer = problem(403, str(error), kind="refused")
        case AccountError():
            answer = _account(error)
        case operations.OperationError():
            answer = _operation(error)
        case kube.KubeError():
            answer = _cluster(error)
        case Missing():
            answer = problem(404, str(error), kind="missing")
        case Http404():
            answer = problem(404, "There is nothing at this address.")
        case PermissionDenied():
            answer = problem(403, str(error) or "This is not allowed.")
        case exceptions.APIException():
            answer = _framework(error)
        case OperationalError() | InterfaceError():
            log.warning("the database does not answer: %s", error)
            answer = problem(503, DATABASE_AWAY, kind="database-away", headers=RETRY)
        case _:
            log.error("unexpected error", exc_info=error)
            got_request_exception.send(sender=None, request=context["request"]._request)
            answer = problem(500, OUR_FAULT)
    return answer


def _account(error: AccountError) -> Response:
    detail = str(error)
    if error.field:
        return problem(422, detail, kind="bad-parameters", errors={error.field: detail})
    return problem(409, detail, kind="not-now")


def _operation(error: operations.OperationError) -> Response:
    detail = str(error)
    match error:
        case operations.BadParameters():
            return problem(422, detail, kind="bad-parameters", errors=error.fields)
        case operations.UnknownKind():
            return problem(422, detail, kind="unknown-kind", errors={"kind": detail})
        case operations.SnapshotMoved():
            return problem(409, detail, kind="snapshot-moved", difference=error.difference)
        case operations.Blocked():
            return problem(409, detail, kind="blocked", blockers=error.blockers)
        case operations.KeyReused():
            return problem(409, detail, kind="key-reused")
        case _:
            return problem(409, detail, kind="not-now")


def _cluster(error: kube.KubeError) -> Response:
    """The cluster's trouble is not the client's: 502, or 503 where it may pass."""
    if isinstance(error, kube.Busy):
        wait = {"Retry-After": str(math.ceil(error.retry_after_seconds))}
        return problem(503, error.sentence, kind="cluster-busy", headers=wait)
    if isinstance(error, kube.Unreachable | kube.BadConfig):
        return problem(503, error.sentence, kind="cluster-unreachable")
    return problem(502, error.sentence, kind="cluster-refused")


def _framework(error: exceptions.APIException) -> Response:
    headers = {}
    if header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = header
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(math.ceil(wait))
    if isinstance(error, exceptions.ValidationError):
        errors = _fields(error.detail)
        detail = " ".join(f"{name}: {sentence}" for name, sentence in errors.items())
        return problem(400, detail, kind="bad-request", errors=errors)
    return problem(error.status_code, str(error.detail), headers=headers)


def _fields(detail: Any, path: str = "") -> dict[str, str]:
    """REST framework's nested lists as one sentence per field."""
    if isinstance(detail, Mapping):
        found: dict[str, str] = {}
        for name, inner in detail.items():
            found |= _fields(inner, f"{path}.{name}" if path else str(name))
        return found
    if isinstance(detail, list):
        return {path or "body": " ".join(str(item) for item in detail)}
    return {path or "body": str(detail)}
