"""The table of nodes, and one node's page."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest
from django.urls import reverse
from django.views.decorators.http import require_safe

from gpuadmin.ledger.queries import DEFAULT_RANGE, RANGES, readings
from gpuadmin.operations.queries import operations_on
from gpuadmin.operations.reversals import standing_on
from gpuadmin.web.forms.filters import Option, chips, read_filters, read_sort, with_query
from gpuadmin.web.page import Here, Page, page
from gpuadmin.web.pictures import node_page
from gpuadmin.web.pictures.blocks import boxes
from gpuadmin.web.pictures.charts import charts, ranges
from gpuadmin.web.pictures.node_table import NodeRow, node_row, ordered, summary
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
KEYS = [key for key, _, _ in COLUMNS]
COOKIE = "node_columns"


@require_safe
@page()
def nodes(request: HttpRequest, here: Here) -> Page:
    kept, rows, sort = chosen_rows(request, here)
    filters = read_filters(request.GET.dict())
    shown = Paginator(kept, PER_PAGE).get_page(request.GET.get("page"))
    picked = columns_of(request)
    return Page(
        "nodes.html",
        {
            "rows": shown.object_list,
            "shown": shown,
            "previous": _page(request, shown.number - 1) if shown.has_previous() else "",
            "next": _page(request, shown.number + 1) if shown.has_next() else "",
            "columns": [_column(request, sort, *c) for c in COLUMNS if c[0] in picked],
            "picked": picked,
            "choices": [_choice(request, picked, key, words) for key, words, _ in COLUMNS[1:]],
            "all_columns": with_query(request.GET, cols="all"),
            "chips": chips(request.GET, filters, rows),
            "filters": filters,
            "any_rows": bool(rows),
            "summary": summary(kept, len(rows)),
            "reporting": sum(row.record.agent_current for row in rows),
            "total": len(rows),
            "csv": f"{reverse('nodes-csv')}{with_query(request.GET)}",
        },
        remember={COOKIE: ".".join(picked)} if "cols" in request.GET else {},
    )


def chosen_rows(request: HttpRequest, here: Here) -> tuple[list[NodeRow], list[NodeRow], str]:
    """What the address asks for, in its order; all rows; and the order."""
    rows = [node_row(record) for record in gpu_records(here.cluster, here.now)]
    query = request.GET.dict()
    filters, sort = read_filters(query), read_sort(query)
    return ordered([row for row in rows if filters.keeps(row)], sort), rows, sort


def columns_of(request: HttpRequest) -> list[str]:
    """Those of the address, else those last chosen in this browser, else all; always the name."""
    asked = request.GET.get("cols", request.COOKIES.get(COOKIE, "")).split(".")
    known = [key for key, _, _ in COLUMNS if key in asked]
    return ["node", *(key for key in known if key != "node")] if known else KEYS


def _choice(request: HttpRequest, picked: list[str], key: str, words: str) -> Option:
    """One line of the menu of columns: with it where it is missing, without it where it stands."""
    wanted = [k for k in KEYS if (k in picked) is not (k == key)]
    return Option(words, with_query(request.GET, cols=".".join(wanted)), key in picked)


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
    span = request.GET.get("range", "")
    span = span if span in RANGES else DEFAULT_RANGE
    hours = readings([gpu.pk for gpu in record.gpus], span, here.now)
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
            "hours": charts(record.gpus, hours),
            "ranges": ranges(span),
            "pods": node_page.pods(record, drawn),
            "taints": node_page.taints(record),
            "conditions": node_page.conditions(record),
            "own_labels": own,
            "other_labels": others,
            "events": node_page.happened(xids, operations, record.gpus)[:EVENTS],
        },
    )
