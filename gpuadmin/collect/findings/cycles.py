"""Our own collection: late is a finding like any other (C42, C43)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuadmin.collect.findings.about import CRITICAL, WARNING
from gpuadmin.fleet.queries import Freshness
from gpuadmin.fleet.services import FindingFact

CODES = ("collection_late",)
_CYCLES = {
    "watch-nodes": "The watch on nodes",
    "watch-pods": "The watch on pods",
    "poll": "The poll of the agents",
}


def of_cycles(cycles: Iterable[Freshness]) -> Iterator[FindingFact]:
    """One finding for each cycle that is late or has a fault."""
    for cycle in cycles:
        if not cycle.late and cycle.ok:
            continue
        name = _CYCLES.get(cycle.kind, cycle.kind)
        age = "has not worked yet" if cycle.age_seconds is None else "is late"
        yield FindingFact(
            code="collection_late",
            severity=CRITICAL if cycle.late else WARNING,
            object_kind="cycle",
            object_uid=cycle.kind,
            object_name=cycle.kind,
            sentence=f"{name} {age if cycle.late else 'has a fault'}",
            advice=cycle.message or "Is the process running? Numbers keep their last true values.",
        )
