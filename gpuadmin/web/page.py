"""What every page has in common: who asks, which cluster, one snapshot, 204 when unchanged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django_htmx.http import HttpResponseClientRedirect

from gpuadmin.accounts.access import Refused, actor_of, may, require
from gpuadmin.accounts.audit import Actor
from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Permission
from gpuadmin.fleet.models import Cluster
from gpuadmin.fleet.queries import clusters, freshness, the_cluster
from gpuadmin.fleet.snapshot import one_snapshot
from gpuadmin.web.navigation import navigation
from gpuadmin.web.pictures.freshness import heart
from gpuadmin.web.pictures.text import plain

P = ParamSpec("P")
YEAR_SECONDS = 31_536_000
# What differs between two renderings of the same state: the clock, ages, the masked CSRF token.
_PASSING = re.compile(
    r'data-now="[^"]*"|(?<=data-age=)"[^<]*(?=</time>)|(?<=csrfmiddlewaretoken" value=)"[^"]*"'
)


@dataclass(frozen=True)
class Here:
    """Where a request stands: one cluster, one actor, one moment."""

    cluster: Cluster
    actor: Actor
    now: datetime

    def may(self, permission: Permission) -> bool:
        return may(self.actor, permission)

    def lacks(self, component: str) -> str:
        """Why an action that takes a component of deploy/ is greyed; "" when it is not known to
        be refused."""
        if self.cluster.components.get(component) is not False:
            return ""
        return f"Our account does not hold the component “{component}”; Set-up has its line"


@dataclass(frozen=True)
class Page:
    """What a view answers with: a template and what it shows. ``remember`` is kept by the browser
    in cookies of these names, for a year."""

    template: str
    context: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    remember: Mapping[str, str] = field(default_factory=dict)


View = Callable[Concatenate[HttpRequest, Here, P], Page | HttpResponse]


def page(
    needs: Permission = Permission.VIEW, *, live_reads: bool = False
) -> Callable[[View[P]], Callable[Concatenate[HttpRequest, P], HttpResponse]]:
    """A view for people with the permission ``needs``; others get a sentence, and a 403 or 302.

    ``live_reads``: it asks the cluster itself or writes, so it holds no database snapshot open.
    """

    def decorate(view: View[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
        @wraps(view)
        def handle(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if not isinstance(request.user, User):
                return _sign_in_first(request)
            _refuse_nul(request.POST)
            actor = actor_of(request)
            try:
                require(actor, needs)
                cluster = the_cluster(request.GET.get("cluster"))
                if cluster is None:
                    return _alone(request, "no_cluster.html", {"actor": actor}, status=200)
                here = Here(cluster, actor, timezone.now())
                if live_reads:
                    return _answer(request, here, view(request, here, *args, **kwargs))
                with one_snapshot():
                    return _answer(request, here, view(request, here, *args, **kwargs))
            except Refused as refusal:
                context = {"sentence": str(refusal), "actor": actor}
                response = _alone(request, "refused.html", context, status=403)
                if request.headers.get("If-None-Match"):  # a live part: the whole page is refused
                    response.headers["HX-Refresh"] = "true"
                return response

        return handle

    return decorate


def in_sheet(request: HttpRequest) -> bool:
    """Whether the answer goes into the side sheet; without script it is a page of its own."""
    return request.headers.get("HX-Target") in ("sheet", "run")


def _refuse_nul(form: QueryDict) -> None:
    """No browser sends one, and PostgreSQL stores none."""
    if any("\0" in value for _, values in form.lists() for value in values):
        raise BadRequest("The form has a NUL character.")


def _sign_in_first(request: HttpRequest) -> HttpResponse:
    response = redirect_to_login(request.get_full_path())
    if request.headers.get("HX-Request"):
        return HttpResponseClientRedirect(response["Location"])
    return response


def _alone(
    request: HttpRequest, template: str, context: Mapping[str, Any], *, status: int
) -> HttpResponse:
    html = render_to_string(template, dict(context), request)
    response = HttpResponse(html, status=status)
    add_never_cache_headers(response)
    return response


def _answer(request: HttpRequest, here: Here, answer: Page | HttpResponse) -> HttpResponse:
    if isinstance(answer, HttpResponse):
        return answer
    context = {**_frame(request, here), **answer.context}
    html = plain(render_to_string(answer.template, context, request))
    fingerprint = hashlib.blake2b(_PASSING.sub("", html).encode(), digest_size=12).hexdigest()
    if request.headers.get("If-None-Match") == fingerprint:
        response = HttpResponse(status=204)
    else:
        response = HttpResponse(html.replace("{hash}", fingerprint), status=answer.status)
    for name, value in answer.remember.items():
        secure = settings.SESSION_COOKIE_SECURE
        response.set_cookie(name, value, YEAR_SECONDS, secure=secure, httponly=True, samesite="Lax")
    add_never_cache_headers(response)
    response.headers["Vary"] = "HX-Request, HX-Target, Cookie"
    return response


def _frame(request: HttpRequest, here: Here) -> dict[str, Any]:
    """What stands around every page."""
    if in_sheet(request):
        return {"here": here, "now": here.now, "in_sheet": True}
    beats = freshness(here.cluster, here.now)
    return {
        "here": here,
        "now": here.now,
        "heart": heart(here.cluster, beats, here.now),
        "navigation": navigation(
            here.cluster, request.path, here.now, with_users=here.may(Permission.USERS)
        ),
        "many_clusters": clusters().count() > 1,
        "may_taint": here.may(Permission.TAINT) and here.may(Permission.CORDON),
        "no_taint": here.lacks("taint"),
        "address": request.get_full_path(),
    }
