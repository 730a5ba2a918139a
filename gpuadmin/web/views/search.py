"""The search box: its list of finds while somebody types, and the page of them."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_safe

from gpuadmin.web.page import Here, Page, page
from gpuadmin.web.pictures.search import groups
from gpuadmin.workloads.search import SHORTEST, search


@require_safe
@page()
def search_page(request: HttpRequest, here: Here) -> Page | HttpResponse:
    found = search(here.cluster, request.GET.get("q", ""))
    shown = groups(found)
    context = {"found": found, "groups": shown, "short": len(found.text) < SHORTEST}
    if request.headers.get("HX-Target") == "found":
        return Page("search/_found.html", context)
    if found.count == 1:
        return HttpResponseRedirect(shown[0].hits[0].href)
    return Page("search.html", context)
