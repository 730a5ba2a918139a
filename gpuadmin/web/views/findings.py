"""Everything that is wrong now."""

from __future__ import annotations

from django.http import HttpRequest
from django.views.decorators.http import require_safe

from gpuadmin.fleet.queries import open_findings
from gpuadmin.web.page import Here, Page, page
from gpuadmin.web.pictures.waiting import tally, wrongs


@require_safe
@page()
def findings(request: HttpRequest, here: Here) -> Page:
    found = wrongs(open_findings(here.cluster))
    return Page("findings.html", {"wrongs": found, "tally": tally(found)})
