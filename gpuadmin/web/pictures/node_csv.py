"""The table of nodes as a file: what each column of the page becomes, with its unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuadmin.planning.facts import ResourceRow
from gpuadmin.web.pictures.node_table import NodeRow

Value = Callable[[NodeRow], Any]
UNITS = {"cards": "card", "slices": "slice", "slots": "slot"}


def _sums(name: str, count: Callable[[ResourceRow], int | None]) -> dict[str, Value]:
    """One file column for each unit, which are never added to each other."""

    def of(unit: str) -> Value:
        def total(row: NodeRow) -> int | None:
            counts = [count(a.row) for a in row.amounts if a.row.unit == unit]
            known = [number for number in counts if number is not None]
            return sum(known) if len(known) == len(counts) else None

        return total

    return {f"{name}_{units}": of(unit) for units, unit in UNITS.items()}


NODE_EXPORT: dict[str, dict[str, Value]] = {
    "node": {"node": lambda r: r.name, "uid": lambda r: r.record.node.uid},
    "state": {"state": lambda r: "; ".join(s.words for s in [r.state, *r.more])},
    "model": {"model": lambda r: r.model or None},
    "cards": {"cards_owned": lambda r: r.owned, "cards_held": lambda r: r.held},
    "allocatable": _sums("allocatable", lambda row: row.allocatable),
    "requested": _sums("requested", lambda row: row.requested),
    "free": _sums("free_now", lambda row: row.free_now),
    "busy": {"cards_busy": lambda r: r.busy},
    "hottest": {"hottest_celsius": lambda r: r.hottest_celsius},
    "sharing": {"sharing": lambda r: r.sharing},
    "driver": {"driver": lambda r: r.driver or None},
    "seen": {"reported_at": lambda r: r.seen},
}
NODE_COLUMNS = tuple(NODE_EXPORT)
