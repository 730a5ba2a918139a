"""Cordons: whether a node takes new pods at all (``spec.unschedulable``).

To the scheduler a cordon is the taint below, whether or not the node carries it: pods that tolerate
it, as those of DaemonSets do, come anyway; nobody is ended.
"""

from __future__ import annotations

from gpuadmin.planning.edits import Edit
from gpuadmin.planning.taints import NO_SCHEDULE, Taint

UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", NO_SCHEDULE)
CLOSED, OPEN = {"unschedulable": True}, {"unschedulable": False}


def close(now: dict[str, bool]) -> Edit:
    """Cordons."""
    return Edit(None, "Already cordoned.") if now == CLOSED else Edit(CLOSED, "It is cordoned.")


def reopen(now: dict[str, bool]) -> Edit:
    """Uncordons."""
    return Edit(None, "Not cordoned.") if now == OPEN else Edit(OPEN, "It is uncordoned.")


def restore(now: dict[str, bool], wrote: dict[str, bool], was: dict[str, bool]) -> Edit:
    """Puts back what was there before we wrote, only where it still reads as we wrote it."""
    if now == was:
        return Edit(None, f"Already as it was: {_state(was)}.")
    if now != wrote:
        return Edit(None, f"Left alone: somebody else changed it, it is {_state(now)}.")
    return Edit(was, f"It is {_state(was)} again.")


def _state(value: dict[str, bool]) -> str:
    return "cordoned" if value == CLOSED else "open to new pods"
