"""The table of nodes, and one node's page."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest
from django.views.decorators.http import require_safe

from gpuadmin.operations.queries import operations_on
from gpuadmin.operations.reversals import standing_on
from gpuadmin.web.forms.filters import chips, read_filters, read_sort, with_query
from gpuadmin.web.page import Here, Page, page
from gpuadmin.web.pictures import node_page
from gpuadmin.web.pictures.blocks import boxes
from gpuadmin.web.pictures.node_table import node_row, ordered, summary
from gpuadmin.web.pictures.operations import standing
from gpuadmin.web.pictures.states import agent_reason, agent_words, node_states
from gpuadmin.web.queries import xids_of
from gpuadmin.workloads.queries import gpu_records, node_record

PER_PAGE = 100
EVENTS = 10
COLUMNS = [
    ("node", "Node", ""),
    ("state", "State", ""),
    ("model", "Model", ""),
    ("cards", "Cards", ""),
    ("allocatable", "Allocatable", "num"),
    ("requested", "Requested", "num"),
    ("free", "Free", "num"),
    ("busy", "Busy", "num"),
    ("hottest", "Hottest", "num"),
    ("sharing", "Sharing", ""),
    ("driver", "Driver", ""),
    ("seen", "Seen", "num"),
]


@require_safe
@page()
def nodes(request: HttpRequest, here: Here) -> Page:
    rows = [node_row(record) for record in gpu_records(here.cluster, here.now)]
    filters, sort = read_filters(request.GET.dict()), read_sort(request.GET.dict())
    kept = ordered([row for row in rows if filters.keeps(row)], sort)
    shown = Paginator(kept, PER_PAGE).get_page(request.GET.get("page"))
    return Page(
        "nodes.html",
        {
            "rows": shown.object_list,
            "shown": shown,
            "previous": _page(request, shown.number - 1) if shown.has_previous() else "",
            "next": _page(request, shown.number + 1) if shown.has_next() else "",
            "columns": [_column(request, sort, *column) for column in COLUMNS],
            "chips": chips(request.GET, filters, rows),
            "filters": filters,
            "any_rows": bool(rows),
            "summary": summary(kept, len(rows)),
            "reporting": sum(row.record.agent_current for row in rows),
            "total": len(rows),
        },
    )


def _page(request: HttpRequest, number: int) -> str:
    return f"{with_query(request.GET)}&page={number}"


def _column(request: HttpRequest, sort: str, key: str, words: str, css: str) -> dict[str, str]:
    current = sort.removeprefix("-") == key
    down = sort.startswith("-")
    return {
        "words": words,
        "css": css,
        "href": with_query(request.GET, sort=f"-{key}" if current and not down else key),
        "sorted": ("descending" if down else "ascending") if current else "",
    }


@require_safe
@page()
def node(request: HttpRequest, here: Here, name: str) -> Page:
    record = node_record(here.cluster, name, here.now)
    if record is None:
        return Page("node_gone.html", {"name": name}, status=404)
    drawn, colours = boxes(record, here.now)
    own, others = node_page.labels(record)
    operations = operations_on(here.cluster, "node", record.node.uid)[:EVENTS]
    xids = xids_of(record.node, EVENTS)
    return Page(
        "node.html",
        {
            "record": record,
            "node": record.node,
            "states": node_states(record),
            "model": node_page.model_line(record, drawn),
            "agent_words": agent_words(record),
            "agent_reason": agent_reason(record),
            "boxes": drawn,
            "standing": standing(standing_on(here.cluster, record.node.uid, here.now)),
            "namespaces": sorted(colours.of.items()),
            "resources": node_page.resources(record),
            "pods": node_page.pods(record, drawn),
            "taints": node_page.taints(record),
            "conditions": node_page.conditions(record),
            "own_labels": own,
            "other_labels": others,
            "events": node_page.happened(xids, operations, record.gpus)[:EVENTS],
        },
    )
