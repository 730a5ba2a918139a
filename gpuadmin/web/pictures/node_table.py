"""The table of nodes: rows, and how they sort and filter. The filter is the address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from gpuadmin.planning.facts import ResourceRow, Use
from gpuadmin.planning.resources import ResourceName, recognise, replicas
from gpuadmin.web.pictures.cards import Card, Tones, cards
from gpuadmin.web.pictures.sentences import mig_layout
from gpuadmin.web.pictures.states import CORDONED, FINE, State, agent_reason, node_states
from gpuadmin.web.pictures.text import count, short_model
from gpuadmin.workloads.facts import NodeRecord

BARS = {Use.IDLE: "isidle", Use.FAILED: "dead", Use.UNMEASURED: "nm", Use.BLOCKED: "off"}


@dataclass(frozen=True)
class Bar:
    """One card in the small bar; ``empty`` is the percentage above the fill, None without one."""

    css: str
    empty: int | None = None


@dataclass(frozen=True)
class Amounts:
    """One resource's counts in a row."""

    short: str
    row: ResourceRow


@dataclass(frozen=True)
class NodeRow:
    record: NodeRecord
    state: State
    more: list[State]
    model: str
    bars: list[Bar]
    amounts: list[Amounts]
    busy: int | None  # None: use is not measured on any card
    hottest_celsius: int | None
    sharing: str | None
    driver: str
    seen: datetime | None
    why_dark: str

    @property
    def name(self) -> str:
        return self.record.node.name

    @property
    def owned(self) -> int:
        return self.record.account.owned

    @property
    def held(self) -> int | None:
        return self.record.account.allocated

    @property
    def has_free(self) -> bool:
        return any(a.row.free_now for a in self.amounts)

    @property
    def namespaces(self) -> set[str]:
        return {d.namespace for d in self.record.devices}


def node_row(record: NodeRecord) -> NodeRow:
    """One node as a row."""
    drawn = cards(record, Tones())
    first, *more = node_states(record)
    heat = [c.temperature_celsius for c in drawn if c.temperature_celsius is not None]
    measured = any(c.utilization_percent is not None for c in drawn)
    agent = record.agent
    return NodeRow(
        record=record,
        state=first,
        more=more,
        model=" + ".join(sorted({short_model(c.model) for c in drawn if c.model})),
        bars=[bar(card) for card in drawn],
        amounts=_amounts(record),
        busy=record.account.uses[Use.BUSY] if measured else None,
        hottest_celsius=max(heat, default=None),
        sharing=_sharing(record, drawn),
        driver=agent.driver_version if agent else "",
        seen=agent.reported_at if agent else None,
        why_dark=agent_reason(record) if not record.agent_current else "not measured here",
    )


def _amounts(record: NodeRecord) -> list[Amounts]:
    """Names that mean something here: a name at 0 is gone (contracts.md 1.10), unless all are."""
    named = [(recognise(row.name), row) for row in record.account.rows]
    known = [Amounts(resource.short, row) for resource, row in named if resource]
    return [each for each in known if each.row.capacity or each.row.requested] or known[:1]


def bar(card: Card) -> Bar:
    """A card in the small bar of a row."""
    if not card.known or card.use is Use.UNKNOWN:
        return Bar("nodata")
    if card.use in BARS:
        return Bar(BARS[card.use])
    if card.use in (Use.BUSY, Use.QUIET) and card.utilization_percent is not None:
        return Bar("", 100 - card.utilization_percent)
    return Bar("")


def _sharing(record: NodeRecord, drawn: list[Card]) -> str | None:
    if not any(card.known for card in drawn):
        return None
    layouts = {mig_layout(card) for card in drawn if card.cut == "mig"}
    factor = replicas(record.node.labels, ResourceName("nvidia.com/gpu", "card"))
    words = [
        f"MIG {layouts.pop()}" if len(layouts) == 1 else "MIG, mixed" if layouts else "",
        f"time-sliced × {factor}" if factor > 1 else "",
    ]
    return ", ".join(filter(None, words)) or "whole"


Key = tuple[float | str, ...]
UNITS = ("card", "slice", "slot", "other")


def _in_units(row: NodeRow, count: Callable[[ResourceRow], int | None]) -> Key | None:
    """Whole cards decide, then slices, then slots: units are never added to each other."""
    counts = [(a.row.unit, count(a.row)) for a in row.amounts]
    if not counts or any(number is None for _, number in counts):
        return None
    return tuple(sum(n or 0 for unit, n in counts if unit == each) for each in UNITS)


def _known(value: float | str | None) -> Key | None:
    return None if value is None or value == "" else (value,)


SORTS: dict[str, Callable[[NodeRow], Key | None]] = {
    "node": lambda r: (r.name,),
    "state": lambda r: (r.state.rank,),
    "model": lambda r: _known(r.model),
    "cards": lambda r: (r.owned,),
    "allocatable": lambda r: _in_units(r, lambda row: row.allocatable),
    "requested": lambda r: _in_units(r, lambda row: row.requested),
    "free": lambda r: _in_units(r, lambda row: row.free_now),
    "busy": lambda r: _known(r.busy),
    "hottest": lambda r: _known(r.hottest_celsius),
    "sharing": lambda r: _known(r.sharing),
    "driver": lambda r: _known(r.driver),
    "seen": lambda r: None if r.seen is None else (r.seen.timestamp(),),
}


def ordered(rows: list[NodeRow], sort: str) -> list[NodeRow]:
    """By a column, ``-`` before it for the other way round; equals stay in the order of names.
    What is unknown comes last either way: it is neither little nor much."""
    keyed = [(SORTS[sort.lstrip("-")](row), row) for row in sorted(rows, key=lambda r: r.name)]
    known = [(key, row) for key, row in keyed if key is not None]
    known.sort(key=lambda pair: pair[0], reverse=sort.startswith("-"))
    return [row for _, row in known] + [row for key, row in keyed if key is None]


STATES: dict[str, tuple[str, Callable[[NodeRow], bool]]] = {
    "wrong": ("wrong", lambda r: r.state.rank < CORDONED),
    "closed": ("closed to new pods", lambda r: bool(r.record.account.closed)),
    "silent": ("no readings", lambda r: not r.record.agent_current),
    "fine": ("ready", lambda r: r.state.rank == FINE),
}


@dataclass(frozen=True)
class Filters:
    """What the address asks for; empty means all."""

    name: str = ""
    state: str = ""
    model: str = ""
    namespace: str = ""
    use: str = ""
    free: bool = False

    def keeps(self, row: NodeRow) -> bool:
        uses = row.record.account.uses
        return (
            self.name.lower() in row.name.lower()
            and (not self.state or STATES[self.state][1](row))
            and (not self.model or row.model == self.model)
            and (not self.namespace or self.namespace in row.namespaces)
            and (not self.use or uses[Use(self.use)] > 0)
            and (not self.free or row.has_free)
        )


def summary(rows: list[NodeRow], of: int) -> str:
    """``12 nodes · 73 cards``, or ``3 of 12 nodes · 20 cards``."""
    nodes = count(of, "node") if len(rows) == of else f"{len(rows)} of {count(of, 'node')}"
    return f"{nodes} · {count(sum(row.owned for row in rows), 'card')}"
