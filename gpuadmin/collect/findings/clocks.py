"""Clocks that disagree with ours (C45). One wrong clock is one finding, ours included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from gpuadmin.collect.findings.about import WARNING, about
from gpuadmin.fleet.models import AgentState
from gpuadmin.fleet.services import FindingFact
from gpuadmin.workloads.facts import NodeRecord

CODES = ("clock_skew", "our_clock")
MAX_SKEW_SECONDS = 30.0
ENOUGH_NODES = 3  # so many must agree before we doubt our own clock
_ANSWERS = (AgentState.Status.OK, AgentState.Status.PAUSED, AgentState.Status.NVML_ERROR)


def of_clocks(records: Iterable[NodeRecord]) -> Iterator[FindingFact]:
    """Skews as the agents' reports showed them. Where most nodes agree with each other and not
    with us, it is our clock that is wrong, and the nodes are measured against theirs.
    """
    skews = [
        (record, record.agent.clock_skew_seconds)
        for record in records
        if record.agent
        and record.agent.status in _ANSWERS
        and record.agent.clock_skew_seconds is not None
    ]
    ours = 0.0
    if len(skews) >= ENOUGH_NODES:
        usual = median(seconds for _, seconds in skews)
        if abs(usual) > MAX_SKEW_SECONDS:
            ours = usual
            yield _our_clock(usual, len(skews))
    for record, seconds in skews:
        if abs(seconds - ours) > MAX_SKEW_SECONDS:
            yield about(
                record.node,
                "clock_skew",
                WARNING,
                f"{record.node.name} has a clock {_off(seconds - ours)}",
                "Our times are the server's, so nothing here is dated by it. Its logs and its "
                "certificates go by its clock: look at its time service (chronyc tracking).",
            )


def _our_clock(seconds: float, nodes: int) -> FindingFact:
    return FindingFact(
        code="our_clock",
        severity=WARNING,
        object_kind="cluster",
        object_uid="clock",
        object_name="our clock",
        sentence=f"The clock of this server is {_off(-seconds)}",
        advice=f"Most of the {nodes} nodes that report agree with each other, and not with it. All "
        "times that we store are off by as much: look at the time service of this machine.",
    )


def _off(seconds: float) -> str:
    """``2 min 5 s ahead``."""
    whole = round(abs(seconds))
    minutes, rest = divmod(whole, 60)
    amount = f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{amount} {'ahead' if seconds > 0 else 'behind'}"
