"""A kubeconfig given in the browser: paste, see what it reaches, keep. It is never shown again."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from gpuadmin.accounts.roles import Permission
from gpuadmin.fleet import kubeconfigs
from gpuadmin.kube.access import review
from gpuadmin.kube.errors import BadConfig
from gpuadmin.web.needs import needs, our_components
from gpuadmin.web.page import Here, Page, in_sheet, page
from gpuadmin.web.pictures.setup import component_lines


@sensitive_post_parameters("kubeconfig", "offer")
@require_http_methods(["GET", "HEAD", "POST"])
@page(Permission.CLUSTER, live_reads=True)
def kubeconfig(request: HttpRequest, here: Here) -> Page | HttpResponse:
    """GET asks for it; POST tries it; POST of what was tried keeps it."""
    typed = {name: request.POST.get(name, "") for name in ("kubeconfig", "context", "offer")}
    problem = kubeconfigs.SET if settings.KUBECONFIG else ""
    tried = None
    if request.method == "POST":
        try:
            if typed["offer"]:
                kubeconfigs.keep(here.actor, here.cluster, typed["offer"])
                return HttpResponseRedirect(reverse("setup"), status=303)
            tried = kubeconfigs.try_out(
                here.actor, here.cluster, typed["kubeconfig"], typed["context"]
            )
            problem = tried.identity.error
        except BadConfig as error:
            problem = error.sentence
    context: dict[str, Any] = {
        **typed,
        "problem": problem,
        "set": bool(settings.KUBECONFIG),
        "given": kubeconfigs.given_for(here.cluster),
        **(_shown(here, tried) if tried and not problem else {}),
    }
    return _sheet(request, context, 422 if problem and request.method == "POST" else 200)


@require_POST
@page(Permission.CLUSTER, live_reads=True)
def remove(request: HttpRequest, here: Here) -> HttpResponse:
    kubeconfigs.remove(here.actor, here.cluster)
    return HttpResponseRedirect(reverse("setup"), status=303)


def _shown(here: Here, tried: kubeconfigs.Tried) -> dict[str, Any]:
    """What the server says of itself and of us."""
    answers = review(tried.client, needs())
    before = here.cluster.server
    return {
        "tried": tried,
        "components": component_lines(our_components(), answers, tried.identity),
        "other_server": before if before and before != tried.config.server else "",
    }


def _sheet(request: HttpRequest, context: dict[str, Any], status: int) -> Page:
    shell = "kubeconfig/_sheet.html" if in_sheet(request) else "kubeconfig/page.html"
    return Page(shell, {**context, "in_sheet": in_sheet(request)}, status)
