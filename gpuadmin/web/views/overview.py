"""The overview: what there is, what is wrong, what waits, what changes."""

from __future__ import annotations

from django.http import HttpRequest
from django.views.decorators.http import require_safe

from gpuadmin.web.page import Here, Page, page
from gpuadmin.web.pictures.heatmap import heat_map
from gpuadmin.web.pictures.operations import changes
from gpuadmin.web.pictures.truth import truth
from gpuadmin.web.pictures.waiting import asked_in_all, tally, waiting, wrongs
from gpuadmin.web.queries import under_way
from gpuadmin.workloads.queries import overview as read_overview

SHOWN_WRONGS = 6


@require_safe
@page()
def overview(request: HttpRequest, here: Here) -> Page:
    shown = read_overview(here.cluster, here.now)
    # The pods that wait have a panel of their own beside it.
    found = wrongs(f for f in shown.findings if f.code != "pods_pending")
    return Page(
        "overview.html",
        {
            "shown": shown,
            "reporting": shown.reporting,
            "total": shown.totals.nodes,
            "truth": truth(shown),
            "map": heat_map(shown.records, here.now),
            "waiting": waiting(shown.waiting),
            "asked": asked_in_all(shown.waiting),
            "wrongs": found[:SHOWN_WRONGS],
            "total_wrong": len(shown.findings),
            "tally": tally(wrongs(shown.findings)),
            "changes": changes(under_way(here.cluster, here.now)),
        },
    )
