"""What a request is told while the database is away (fault 6): try again, and when."""

from __future__ import annotations

import logging
import sys
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseServerError, JsonResponse
from django.template.loader import render_to_string

from gpuadmin.api.problems import CONTENT_TYPE, DATABASE_AWAY, OUR_FAULT, RETRY, body_of

log = logging.getLogger(__name__)


def broken(request: HttpRequest, *_: Any) -> HttpResponse:
    """Django's handler500: 503 with Retry-After where the database is away, else 500.

    Django calls it inside its own ``except``, so the error is the one being handled. A lost
    database is one warning line; Django would log a trace for each request of an outage.
    """
    error = sys.exc_info()[1]
    away = isinstance(error, OperationalError | InterfaceError)
    if away:
        log.warning("%s: the database does not answer: %s", request.path, error)
    status, sentence = (503, DATABASE_AWAY) if away else (500, OUR_FAULT)
    answer: HttpResponse
    if request.path.startswith("/api/"):
        kind = "database-away" if away else ""
        body = body_of(status, sentence, kind=kind)
        answer = JsonResponse(body, status=status, content_type=CONTENT_TYPE)
    else:
        # Without the request: no context processor may ask the database that is away.
        page = "503.html" if away else "500.html"
        answer = HttpResponseServerError(render_to_string(page), status=status)
    if away:
        for name, value in RETRY.items():
            answer[name] = value
        answer._has_been_logged = True  # type: ignore[union-attr]  # what log_response looks at
    return answer
