"""The history of changes, one change with its steps, and its undo."""

from __future__ import annotations

from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpuadmin.accounts.roles import Permission
from gpuadmin.operations import services
from gpuadmin.operations.errors import NotNow
from gpuadmin.operations.kinds import kind_of
from gpuadmin.operations.models import Operation, State
from gpuadmin.operations.queries import (
    operation_detail,
    operations,
    undoable_targets,
    waits_for,
)
from gpuadmin.operations.store import Confirmation, Previewed
from gpuadmin.web.forms.confirm import ConfirmForm
from gpuadmin.web.forms.filters import with_query
from gpuadmin.web.page import Here, Page, in_sheet, page
from gpuadmin.web.pictures import operations as pictures
from gpuadmin.web.views.change import Sheet, change_page, run, try_preview

PER_PAGE = 50


@require_safe
@page()
def history(request: HttpRequest, here: Here) -> Page:
    state, node = request.GET.get("state", ""), request.GET.get("node", "")
    who = request.GET.get("who", "")
    chosen = (("State", "state", state), ("Node", "node", node), ("By", "who", who))
    every = operations(here.cluster).prefetch_related("targets__steps")
    found = chosen_operations(request, every)
    shown = Paginator(found, PER_PAGE).get_page(request.GET.get("page"))
    return Page(
        "operations.html",
        {
            "changes": pictures.changes(shown.object_list),
            "shown": shown,
            "csv": f"{reverse('operations-csv')}{with_query(request.GET)}",
            "previous": f"{with_query(request.GET)}&page={shown.number - 1}",
            "next": f"{with_query(request.GET)}&page={shown.number + 1}",
            "states": [
                (pictures.STATES[one], with_query(request.GET, state=one.value), one == state)
                for one in pictures.STATES
                if one is not State.PLANNED
            ],
            "chosen": [
                (f"{label}: {value}", with_query(request.GET, **{name: ""}))
                for label, name, value in chosen
                if value
            ],
        },
    )


def chosen_operations(request: HttpRequest, found: QuerySet[Operation]) -> QuerySet[Operation]:
    """Those that the address asks for."""
    query = request.GET
    if query.get("state", "") in State:
        found = found.filter(state=query["state"])
    if node := query.get("node"):
        found = found.filter(targets__object_name=node).distinct()
    if who := query.get("who"):
        found = found.filter(created_by__username=who)
    return found


@require_safe
@page()
def operation(request: HttpRequest, here: Here, operation_id: UUID) -> Page:
    return _operation_page(request, here, _find(here, operation_id))


@require_http_methods(["GET", "HEAD", "POST"])
@page(live_reads=True)
def undo(request: HttpRequest, here: Here, operation_id: UUID) -> Page | HttpResponse:
    first = _find(here, operation_id)
    form = ConfirmForm.read(request.POST) if request.method == "POST" else ConfirmForm()

    def preview() -> Previewed:
        return services.preview_undo(here.actor, first)

    def create(confirmation: Confirmation) -> tuple[Operation, bool]:
        return services.undo(here.actor, first, confirmation)

    if request.method == "POST":
        attempt = run(form, create, preview)
        if isinstance(attempt, HttpResponse):
            return attempt
    else:
        attempt = try_preview(preview)
    here_again = reverse("undo", args=[first.pk])
    back = reverse("operation", args=[first.pk])
    sheet = Sheet(f"Undo: {first.title}", here_again, back, lasts=False)
    return change_page(request, attempt, form, sheet)


@require_POST
@page(Permission.CANCEL, live_reads=True)
def cancel(request: HttpRequest, here: Here, operation_id: UUID) -> Page | HttpResponse:
    found = _find(here, operation_id)
    try:
        services.cancel(here.actor, found)
    except NotNow as error:
        return _operation_page(request, here, found, str(error), status=409)
    response = HttpResponseRedirect(reverse("operation", args=[found.pk]))
    response.status_code = 303
    return response


def _find(here: Here, operation_id: UUID) -> Operation:
    found = operation_detail().filter(cluster=here.cluster, pk=operation_id).first()
    if found is None:
        raise Http404
    return found


def _operation_page(
    request: HttpRequest, here: Here, found: Operation, problem: str = "", status: int = 200
) -> Page:
    return Page(
        "change/run.html" if in_sheet(request) else "operation.html",
        {
            "operation": found,
            "change": pictures.change(found),
            "targets": pictures.targets(found),
            "ended": pictures.ended(found),
            "kubectl": pictures.kubectl(found),
            "rail": pictures.rail(pictures.stage(found)),
            "waits_for": waits_for(found),
            "undos": list(found.undos.all()),
            "may_undo": here.may(kind_of(found.kind).permission) and bool(undoable_targets(found)),
            "may_cancel": here.may(Permission.CANCEL) and found.state == State.QUEUED,
            "problem": problem,
            "in_sheet": in_sheet(request),
        },
        status,
    )
