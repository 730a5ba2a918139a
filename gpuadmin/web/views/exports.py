"""Every table as CSV, with the filters and the order of its page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from gpuadmin.fleet.queries import open_findings
from gpuadmin.operations.queries import operations
from gpuadmin.web.export import csv_answer
from gpuadmin.web.page import Here, page
from gpuadmin.web.pictures.node_csv import NODE_COLUMNS, NODE_EXPORT
from gpuadmin.web.pictures.operations import title
from gpuadmin.web.views.nodes import chosen_rows, columns_of
from gpuadmin.web.views.operations import chosen_operations
from gpuadmin.workloads.queries import present_pods


@require_safe
@page()
def nodes(request: HttpRequest, here: Here) -> HttpResponse:
    kept, _, _ = chosen_rows(request, here)
    shown = columns_of(request)
    names = [name for column in NODE_COLUMNS if column in shown for name in NODE_EXPORT[column]]
    values = [NODE_EXPORT[column][name] for column in shown for name in NODE_EXPORT[column]]
    return csv_answer(here, "nodes", names, ([value(row) for value in values] for row in kept))


@require_safe
@page()
def findings(request: HttpRequest, here: Here) -> HttpResponse:
    header = ["severity", "code", "object_kind", "object", "node", "sentence", "advice"]
    rows = (
        [
            one.severity,
            one.code,
            one.object_kind,
            one.object_name,
            one.node_name,
            one.sentence,
            one.advice,
            one.first_seen,
            one.last_seen,
            one.count,
        ]
        for one in open_findings(here.cluster)
    )
    return csv_answer(here, "findings", [*header, "first_seen", "last_seen", "times"], rows)


@require_safe
@page()
def changes(request: HttpRequest, here: Here) -> HttpResponse:
    header = ["id", "change", "state", "targets", "by", "why", "asked_at", "finished_at"]
    found = chosen_operations(request, operations(here.cluster).prefetch_related("targets"))
    rows = (
        [
            one.id,
            title(one),
            one.state,
            " ".join(target.object_name for target in one.targets.all()),
            one.created_by.get_username(),
            one.reason,
            one.created_at,
            one.finished_at,
        ]
        for one in found
    )
    return csv_answer(here, "operations", header, rows)


@require_safe
@page()
def pods(request: HttpRequest, here: Here) -> HttpResponse:
    """Pods that ask for accelerators, all or those of ``?node=``; those that wait have no node."""
    header = ["namespace", "pod", "phase", "node", "owner", "asks", "message"]
    found = present_pods(here.cluster)
    if name := request.GET.get("node"):
        found = found.filter(node_name=name)
    if request.GET.get("waiting"):
        found = found.filter(phase="Pending", node_name="")
    rows = (
        [
            pod.namespace,
            pod.name,
            pod.phase,
            pod.node_name,
            f"{pod.owner_kind} {pod.owner_name}".strip(),
            "; ".join(f"{amount} x {name}" for name, amount in sorted(pod.requests.items())),
            pod.message,
            pod.created_at,
            pod.bound_at,
        ]
        for pod in found
    )
    return csv_answer(here, "pods", [*header, "created_at", "bound_at"], rows)
