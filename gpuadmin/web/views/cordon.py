"""Cordon and uncordon of one node or several: preview, run."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from gpuadmin.accounts.roles import Permission
from gpuadmin.web.forms.confirm import ConfirmForm
from gpuadmin.web.forms.cordon import CordonForm
from gpuadmin.web.page import Here, Page, page
from gpuadmin.web.queries import present_nodes
from gpuadmin.web.views.change import (
    Attempt,
    Sheet,
    change_page,
    heading,
    not_there,
    run_or_preview,
)


@require_http_methods(["GET", "HEAD", "POST"])
@page(Permission.CORDON, live_reads=True)
def cordon(request: HttpRequest, here: Here) -> Page | HttpResponse:
    """GET shows the preview; POST runs what was previewed."""
    posted = request.method == "POST"
    form = CordonForm.read(request.POST if posted else request.GET)
    confirm = ConfirmForm.read(request.POST) if posted else ConfirmForm()
    nodes = list(present_nodes(here.cluster, form.names))
    if problem := not_there(form.names, nodes) or ("" if nodes else "No node was chosen."):
        attempt = Attempt(problem=problem)
    else:
        change = (form.kind, {"nodes": [node.uid for node in nodes]})
        done = run_or_preview(request, here, change, confirm)
        if isinstance(done, HttpResponse):
            return done
        attempt = done
    names = [node.name for node in nodes]
    sheet = Sheet(
        heading(form.action.capitalize(), names), reverse("cordon"), reverse("nodes"), form.hidden
    )
    return change_page(request, attempt, confirm, sheet, nodes=nodes)
