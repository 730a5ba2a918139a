"""How the part that a change writes reads in a diff and in a sentence."""

from __future__ import annotations

from gpuadmin.planning.edits import Value
from gpuadmin.planning.taints import Taint


def words(value: Value) -> list[str]:
    """One text for each thing in it: ``["team=a:NoSchedule"]``, ``["cordoned"]``."""
    if isinstance(value, dict):
        return ["cordoned"] if value.get("unschedulable") else []
    return [str(Taint.of(taint)) for taint in value]
