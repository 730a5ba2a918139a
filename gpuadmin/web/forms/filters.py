"""Filters and sort orders that an address may ask for. What makes no sense counts as not set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.http import QueryDict

from gpuadmin.planning.facts import Use
from gpuadmin.web.pictures.node_table import SORTS, STATES, Filters, NodeRow
from gpuadmin.web.pictures.states import USE_WORDS

DEFAULT_SORT = "state"


@dataclass(frozen=True)
class Option:
    words: str
    query: str
    current: bool
    count: int | None = None


@dataclass(frozen=True)
class Chip:
    """One filter. ``options`` empty: a switch; ``clear`` is the address without it."""

    words: str
    on: bool
    clear: str
    options: list[Option]


def read_filters(query: Mapping[str, str]) -> Filters:
    """From an address."""
    state, use = query.get("state", ""), query.get("use", "")
    return Filters(
        name=query.get("name", "").strip()[:253],
        state=state if state in STATES else "",
        model=query.get("model", ""),
        namespace=query.get("namespace", ""),
        use=use if use in list(Use) else "",
        free=query.get("free") == "1",
    )


def read_sort(query: Mapping[str, str]) -> str:
    sort = query.get("sort", "")
    return sort if sort.removeprefix("-") in SORTS else DEFAULT_SORT


def with_query(query: QueryDict, **changes: str) -> str:
    """The address's query with some parts set, or dropped where "", and back on page 1."""
    copy = query.copy()
    copy.pop("page", None)
    for name, value in changes.items():
        copy.pop(name, None)
        if value:
            copy[name] = value
    return "?" + copy.urlencode()


def chips(query: QueryDict, filters: Filters, rows: Iterable[NodeRow]) -> list[Chip]:
    """The filters of the table of nodes, with how many nodes each choice would keep."""
    rows = list(rows)
    models = Counter(row.model for row in rows if row.model)
    namespaces = Counter(name for row in rows for name in row.namespaces)
    uses = Counter(use.value for row in rows for use in row.record.account.uses)
    states = {key: sum(test(row) for row in rows) for key, (_, test) in STATES.items()}
    chosen = [
        ("State", "state", filters.state, "anything", states, {k: v[0] for k, v in STATES.items()}),
        ("Model", "model", filters.model, "all", models, {}),
        ("Held by", "namespace", filters.namespace, "anyone", namespaces, {}),
        ("Cards", "use", filters.use, "any", uses, {u.value: w for u, w in USE_WORDS.items()}),
    ]
    found = [_chip(query, *choice) for choice in chosen]
    free = with_query(query, free="" if filters.free else "1")
    found.append(Chip("Free now", filters.free, free, []))
    return found


def _chip(
    query: QueryDict,
    label: str,
    name: str,
    value: str,
    nothing: str,
    counts: Mapping[str, int],
    words: Mapping[str, str],
) -> Chip:
    return Chip(
        words=f"{label}: {words.get(value, value) or nothing}",
        on=bool(value),
        clear=with_query(query, **{name: ""}),
        options=[
            Option(words.get(key, key), with_query(query, **{name: key}), key == value, number)
            for key, number in sorted(counts.items())
        ],
    )
