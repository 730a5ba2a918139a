"""Tables as CSV: units in the headers, what is unknown is an empty cell, formulas are defused."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.utils.cache import add_never_cache_headers

from gpuadmin.web.page import Here
from gpuadmin.web.pictures.text import plain

# What a spreadsheet takes for the start of a formula, in its full-width form, too.
_FORMULA = tuple("=+-@|\t\r\n\uff1d\uff0b\uff0d\uff20")


class _Line:
    """What csv writes to, one line at a time."""

    def write(self, text: str) -> str:
        return text


def cell(value: object) -> object:
    """A value as it may stand in a spreadsheet: text stays text, None is empty."""
    if value is None or isinstance(value, (bool, int, float)):
        return "" if value is None else value
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    text = plain(str(value))
    return "'" + text if text.lstrip(" ").startswith(_FORMULA) else text


def csv_answer(
    here: Here, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> HttpResponse:
    """A file to save. Its name and each row say which cluster it is of, and when it was read."""
    writer = csv.writer(_Line(), lineterminator="\r\n")
    cluster = here.cluster.name + (" (simulated)" if here.cluster.simulated else "")
    tail = [cell(cluster), cell(here.now)]
    lines = [writer.writerow([*header, "cluster", "read_at"])]
    lines += [writer.writerow([*map(cell, row), *tail]) for row in rows]
    response = HttpResponse("".join(lines), content_type="text/csv; charset=utf-8")
    simulated = "simulated-" if here.cluster.simulated else ""
    file = f"{simulated}{name}-{here.now:%Y%m%dT%H%M%S}Z.csv"
    response["Content-Disposition"] = f'attachment; filename="{file}"'
    response["X-Content-Type-Options"] = "nosniff"
    add_never_cache_headers(response)
    return response
