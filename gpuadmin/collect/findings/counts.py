"""Numbers of a node that do not fit each other: withdrawn, promised twice, stale, impossible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuadmin.collect.findings.about import CRITICAL, WARNING, about
from gpuadmin.fleet.models import Gpu
from gpuadmin.fleet.services import FindingFact
from gpuadmin.planning.facts import Note, ResourceRow, Use
from gpuadmin.planning.resources import recognise
from gpuadmin.workloads.facts import NodeRecord

CODES = ("withdrawn", "over_committed", "stale_resource", "data_fault")
_AFTER_AN_XID = (
    "The agent reads every card. The device plugin withdraws one after an XID error and gives it "
    "back only when it is restarted."
)


def of_counts(record: NodeRecord) -> Iterator[FindingFact]:
    """C01 and C02, one finding a node and code, with all the names in it."""
    rows = [row for row in record.account.rows if row.unit != "other"]
    sound = [row for row in rows if row.note is None]
    if withdrawn := [row for row in sound if row.unhealthy]:
        yield _withdrawn(record, withdrawn)
    if over := [row for row in sound if row.over_committed]:
        yield _over_committed(record, over)
    if stale := [row for row in rows if row.note is Note.STALE]:
        yield _stale(record, stale)
    if faults := [row for row in rows if row.note is Note.FAULT]:
        yield _fault(record, faults)


def _withdrawn(record: NodeRecord, rows: list[ResourceRow]) -> FindingFact:
    """Allocatable below capacity, and why (contracts.md 1.9)."""
    amounts = _listed(f"{row.unhealthy} of {row.capacity} {_short(row)}" for row in rows)
    failed = [gpu for gpu in record.gpus if gpu.state in (Gpu.State.LOST, Gpu.State.MISSING)]
    why = "No agent reports, so it is not known which card it is."
    if failed:
        why = _listed(f"GPU {gpu.index} is {gpu.state}" for gpu in failed) + "."
    elif record.agent_current:
        why = _AFTER_AN_XID
    if any(row.unit == "slot" for row in rows):
        why += " Of a shared card it withdraws a single slot: one already means a sick card."
    blocked = [card for card in record.account.cards if card.use is Use.BLOCKED and card.observed]
    if blocked and not record.account.closed:
        why += " " + _listed(f"GPU {c.index} is not held, but {c.reason}" for c in blocked) + "."
    sentence = f"{record.node.name} has {amounts} withdrawn by the device plugin as unhealthy"
    return about(record.node, "withdrawn", WARNING, sentence, why)


def _over_committed(record: NodeRecord, rows: list[ResourceRow]) -> FindingFact:
    asked = _listed(
        f"{row.requested} {_short(row)} of {max(0, row.allocatable or 0)}" for row in rows
    )
    return about(
        record.node,
        "over_committed",
        WARNING,
        f"{record.node.name} is over-committed: its pods ask for {asked}",
        "Its pods run on, and nothing new comes before enough of them have ended. A pod that is "
        "started again there may find no device.",
    )


def _stale(record: NodeRecord, rows: list[ResourceRow]) -> FindingFact:
    names = _listed(_short(row) for row in rows)
    return about(
        record.node,
        "stale_resource",
        WARNING,
        f"{record.node.name} advertises {names} without hardware behind",
        "They are in no total; a pod that asks for one is bound here and never runs. Restart the "
        "device plugin on the node, then its kubelet. We never write a node's status ourselves.",
    )


def _fault(record: NodeRecord, rows: list[ResourceRow]) -> FindingFact:
    told = _listed(
        f"{_short(row)} with capacity {_number(row.capacity)} and allocatable "
        f"{_number(row.allocatable)}"
        for row in rows
    )
    return about(
        record.node,
        "data_fault",
        CRITICAL,
        f"{record.node.name} reports numbers that can't be: {told}",
        "They are in no total. Look at the device plugin that gives this name.",
    )


def _number(value: int | None) -> str:
    return "no number" if value is None else str(value)


def _short(row: ResourceRow) -> str:
    resource = recognise(row.name)
    return resource.short if resource else row.name


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
