"""Whether a report may be believed: who it speaks for, and what is impossible in it.

Cases C29, C40; faults 14 and 17. A report is taken whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.contract.report import Gpu, MigInstance, Process, Report
from gpuadmin.planning.resources import MAX_REPLICAS

MAX_GPUS = 64
MAX_INSTANCES = 32  # of one card
MAX_DEVICES = 100_000
MAX_AGE_SECONDS = 10 * 365 * 86400
_UINT32 = 2**32
_BIGINT = 2**62
_SMALL = 2**15 - 1
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
    return next((told for told in _doubts(report) if told), "")


def _doubts(report: Report) -> Iterator[str]:
    if len(report.gpus) > MAX_GPUS:
        yield f"It reports {len(report.gpus)} cards; more than {MAX_GPUS} is not believed."
    if any(len(gpu.mig_instances) > MAX_INSTANCES for gpu in report.gpus):
        yield f"It reports more than {MAX_INSTANCES} MIG instances of one card."
    uuids = [gpu.uuid for gpu in report.gpus if gpu.uuid]
    uuids += [instance.uuid for gpu in report.gpus for instance in gpu.mig_instances]
    if len(set(uuids)) != len(uuids):
        yield "It reports one UUID twice."
    if len({gpu.index for gpu in report.gpus}) != len(report.gpus):
        yield "It reports one card index twice."
    if not all(map(_may_be, report.gpus)):
        yield "It reports a card that can't be."
    if not all(_is_xid(xid.code, xid.sequence, xid.age_seconds) for xid in report.xids):
        yield "It reports an XID that can't be."
    numbers = 0 <= report.xid_sequence < _BIGINT and abs(report.sent_at) <= _UINT32
    if not (numbers and 0 <= (report.xids_from or 0) <= MAX_AGE_SECONDS):
        yield "It reports a time or a number that can't be."
    yield _doubt_of_devices(report)


def _may_be(gpu: Gpu) -> bool:
    names = [gpu.uuid or "", *(instance.uuid for instance in gpu.mig_instances)]
    return (
        0 <= gpu.index < 4096
        and all(len(name) <= 80 and "\0" not in name for name in names)
        and 0 <= gpu.unreadable_processes < _UINT32 // 2
        and all(map(_is_instance, gpu.mig_instances))
        and all(map(_is_process, gpu.processes or ()))
    )


def _is_instance(instance: MigInstance) -> bool:
    numbers = (
        instance.gpu_instance_id,
        instance.compute_instance_id,
        instance.compute_slices,
        instance.placement_start,
        instance.placement_size,
    )
    return all(number is None or 0 <= number <= _SMALL for number in numbers)


def _is_process(process: Process) -> bool:
    used = process.memory_used_bytes
    return 0 < process.pid < _UINT32 and (used is None or 0 <= used < _BIGINT)


def _is_xid(code: int, sequence: int, age_seconds: float) -> bool:
    return (
        0 <= code < _UINT32 // 2 and 0 < sequence < _BIGINT and 0 <= age_seconds <= MAX_AGE_SECONDS
    )


def _doubt_of_devices(report: Report) -> str:
    devices = [device for holder in report.pods or () for device in holder.devices]
    if len(devices) > MAX_DEVICES:
        return f"It reports more than {MAX_DEVICES} devices."
    ids = [device.gpu_uuid or "" for device in devices] + [
        device.mig_uuid or "" for device in devices
    ]
    if any(len(name) > 80 or "\0" in name for name in ids):
        return "It reports a device of a card that can't be."
    if any(device.slot is not None and not 0 <= device.slot < MAX_REPLICAS for device in devices):
        return "It reports a slot that can't be."
    return ""


def reading(gpu: Gpu | MigInstance, field: str) -> int | float | None:
    """One measured field of a card or instance; None when unknown or outside its physical range."""
    value: int | float | None = getattr(gpu, field)
    low, high = LIMITS[field]
    return value if value is not None and low <= value <= high else None
