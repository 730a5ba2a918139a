"""Taints of one node or several: choose, preview, run."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from gpuadmin.accounts.roles import Permission
from gpuadmin.fleet.models import Node
from gpuadmin.planning.taints import Taint
from gpuadmin.web.forms.confirm import ConfirmForm
from gpuadmin.web.forms.taint import TaintForm
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
@page(Permission.TAINT, live_reads=True)
def taint(request: HttpRequest, here: Here) -> Page | HttpResponse:
    """GET shows the choice and, once it is complete, the preview; POST runs what was previewed."""
    posted = request.method == "POST"
    form = TaintForm.read(request.POST if posted else request.GET)
    confirm = ConfirmForm.read(request.POST) if posted else ConfirmForm()
    nodes = list(present_nodes(here.cluster, form.names))
    if missing := not_there(form.names, nodes):
        attempt = Attempt(problem=missing)
    else:
        change = (form.kind, form.parameters([node.uid for node in nodes]))
        ready = form.asked and bool(nodes)
        done = run_or_preview(request, here, change, confirm, ready=ready)
        if isinstance(done, HttpResponse):
            return done
        attempt = done
    names = [node.name for node in nodes]
    sheet = Sheet(heading("Taints of", names), reverse("taint"), reverse("nodes"), form.hidden)
    return change_page(
        request, attempt, confirm, sheet, form=form, nodes=nodes, present=_present(form, nodes)
    )


def _present(form: TaintForm, nodes: list[Node]) -> list[tuple[str, str, int]]:
    """Taints that any of the nodes has: text, the address that removes it, on how many."""
    on: dict[Taint, int] = {}
    for node in nodes:
        for each in node.taints:
            found = Taint.of(each)
            on[found] = on.get(found, 0) + 1
    return [
        (
            str(found),
            form.address(action="remove", key=found.key, effect=found.effect, value=""),
            number,
        )
        for found, number in sorted(on.items())
    ]
