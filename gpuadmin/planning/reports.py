"""Whether a report may be believed: who it speaks for, and what is impossible in it.

Cases C29, C40; faults 14 and 17. A report is taken whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent.contract.report import Gpu, Report

MAX_GPUS = 64
LIMITS: Mapping[str, tuple[float, float]] = {
    # A reading outside is impossible and becomes unknown, never clipped (design.md section 4).
    "utilization_percent": (0, 100),
    "memory_utilization_percent": (0, 100),
    "temperature_celsius": (-40, 200),
    "power_watts": (0, 5000),
    "power_limit_watts": (0, 5000),
    "memory_used_bytes": (0, 2**44),
    "memory_total_bytes": (1, 2**44),
    "ecc_uncorrectable_volatile": (0, 2**62),
}


def wrong_identity(
    report: Report, *, node_name: str, pod_uid: str, boot_id: str | None, machine_id: str | None
) -> str:
    """Why this report can't be this node's; "" when it is. The machine id may be unreadable."""
    if report.node_name != node_name:
        return f"It speaks for node {report.node_name[:80]!r}, not for {node_name!r}."
    if report.pod_uid != pod_uid:
        return "It is not the pod that we asked."
    if not report.boot_id:
        return "It can't read its host's boot id: mount /proc of the host under AGENT_HOST_ROOT."
    if boot_id and report.boot_id.lower() != boot_id.lower():
        return "It runs on another boot of the machine than the node's status says."
    if machine_id and report.machine_id and report.machine_id != machine_id:
        return "It runs on another machine than the node's status says."
    return ""


def impossible(report: Report) -> str:
    """What makes the whole report unbelievable; "" when nothing does."""
    if len(report.gpus) > MAX_GPUS:
        return f"It reports {len(report.gpus)} cards; more than {MAX_GPUS} is not believed."
    uuids = [gpu.uuid for gpu in report.gpus if gpu.uuid]
    uuids += [instance.uuid for gpu in report.gpus for instance in gpu.mig_instances]
    if len(set(uuids)) != len(uuids):
        return "It reports one UUID twice."
    if len({gpu.index for gpu in report.gpus}) != len(report.gpus):
        return "It reports one card index twice."
    if any(gpu.index < 0 or len(gpu.uuid or "") > 80 for gpu in report.gpus):
        return "It reports a card that can't be."
    return ""


def reading(gpu: Gpu, field: str) -> int | float | None:
    """One measured field of a card; None when unknown or outside its physical range."""
    value: int | float | None = getattr(gpu, field)
    low, high = LIMITS[field]
    return value if value is not None and low <= value <= high else None
