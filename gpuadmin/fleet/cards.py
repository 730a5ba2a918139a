"""Storing the cards of one believed report: services of `fleet`, kept apart for their length."""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime
from typing import Any

import msgspec
from django.conf import settings

from agent.contract.report import Gpu as GpuReport
from agent.contract.report import MigInstance as InstanceReport
from gpuadmin.fleet.fitting import fit, plain
from gpuadmin.fleet.models import Gpu, MigInstance, Node
from gpuadmin.planning.reports import reading

_STORED = [
    field.name for field in Gpu._meta.fields if field.name not in ("id", "node", "first_seen")
]
_OF_INSTANCE = [
    field.name for field in MigInstance._meta.fields if field.name not in ("id", "gpu", "uuid")
]


def store_cards(
    node: Node, reports: tuple[GpuReport, ...], held: Set[str] | None, now: datetime
) -> list[Gpu]:
    """Update the node's cards; those no longer counted become missing, never silently gone (C25).

    ``held`` are the UUIDs of cards of which a pod holds a part, None when not known. Returns the
    cards of which this report had a reading.
    """
    known = {gpu.uuid: gpu for gpu in node.gpus.prefetch_related("instances")}
    told = {report.uuid for report in reports if report.uuid}
    taken: list[tuple[Gpu, GpuReport]] = []
    for report in reports:
        gpu = _known_card(known, report, told) or Gpu(node=node, first_seen=now)
        known.pop(gpu.uuid, None)
        gpu.uuid = report.uuid or gpu.uuid or unread_uuid(report.index)
        _take(gpu, report, held, now)
        taken.append((gpu, report))
    for gpu in known.values():
        _set_state(gpu, Gpu.State.MISSING, "The driver no longer counts this card.", now)
    _save([*(gpu for gpu, _ in taken), *known.values()])
    read = [(gpu, report) for gpu, report in taken if report.state == "ok"]
    _store_instances(read)
    return [gpu for gpu, _ in read]


def _save(gpus: list[Gpu]) -> None:
    """In two queries, however many cards."""
    Gpu.objects.bulk_create([gpu for gpu in gpus if gpu.pk is None])
    stored = [gpu for gpu in gpus if not gpu._state.adding]
    Gpu.objects.bulk_update(stored, _STORED)


def unread_uuid(index: int) -> str:
    """What stands for the uuid of a card that was lost before it ever told one (C25)."""
    return f"unread-{index}"


def _known_card(known: dict[str, Gpu], report: GpuReport, told: Set[str]) -> Gpu | None:
    """The stored row of a reported card: by uuid; else the one that stood at its index before the
    agent started, as long as no other report claims that one.
    """
    if report.uuid:
        return known.get(report.uuid) or known.get(unread_uuid(report.index))
    at_index = (gpu for gpu in known.values() if gpu.index == report.index)
    return next((gpu for gpu in at_index if gpu.uuid not in told), None)


def _take(gpu: Gpu, report: GpuReport, held: Set[str] | None, now: datetime) -> None:
    gpu.index = report.index
    _set_state(gpu, Gpu.State(report.state), report.error or "", now)
    if report.state != "ok":
        gpu.idle_since = None
        return
    for name, value in fit(Gpu, _identity(report) | _readings(report)).items():
        setattr(gpu, name, value)
    gpu.read_at = now
    gpu.idle_since = _idle_since(gpu, held, now)


def _set_state(gpu: Gpu, state: Gpu.State, error: str, now: datetime) -> None:
    if gpu.pk is None or gpu.state != state:
        gpu.state, gpu.state_since = state, now
    gpu.error = plain(error)


def _identity(report: GpuReport) -> dict[str, Any]:
    return {
        "name": report.name or "",
        "serial": report.serial or "",
        "pci_bus_id": report.pci_bus_id or "",
        "compute_capability": report.compute_capability or "",
        "memory_kind": report.memory_kind,
        "mig_mode_current": report.mig_mode_current,
        "mig_mode_pending": report.mig_mode_pending,
    }


def _readings(report: GpuReport) -> dict[str, Any]:
    return {
        "memory_total_bytes": reading(report, "memory_total_bytes"),
        "memory_used_bytes": reading(report, "memory_used_bytes"),
        "utilization_percent": reading(report, "utilization_percent"),
        "temperature_celsius": reading(report, "temperature_celsius"),
        "power_watts": reading(report, "power_watts"),
        "power_limit_watts": reading(report, "power_limit_watts"),
        "ecc_uncorrectable": reading(report, "ecc_uncorrectable_volatile"),
        "processes": None if report.processes is None else msgspec.to_builtins(report.processes),
        "unreadable_processes": report.unreadable_processes,
        "field_errors": report.field_errors,
    }


def _idle_since(gpu: Gpu, held: Set[str] | None, now: datetime) -> datetime | None:
    """Since when the card is held and unused; None when it is not, or can't be known (C28).

    One reading that is missing says nothing: what was known before stays.
    """
    if gpu.mig_mode_current or (held is not None and gpu.uuid not in held):
        return None
    if held is None or gpu.utilization_percent is None:
        return gpu.idle_since
    return (gpu.idle_since or now) if gpu.utilization_percent < settings.IDLE_PERCENT else None


def _store_instances(read: list[tuple[Gpu, GpuReport]]) -> None:
    """In two queries, however many cards and instances."""
    rows = [
        MigInstance(gpu=gpu, uuid=each.uuid, **fit(MigInstance, _instance(each)))
        for gpu, report in read
        for each in report.mig_instances
    ]
    wanted = {(row.gpu_id, row.uuid) for row in rows}
    known = [each for gpu, _ in read if gpu.pk for each in gpu.instances.all()]
    gone = [each.pk for each in known if (each.gpu_id, each.uuid) not in wanted]
    if gone:
        MigInstance.objects.filter(pk__in=gone).delete()
    MigInstance.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["gpu", "uuid"],
        update_fields=_OF_INSTANCE,
    )


def _instance(report: InstanceReport) -> dict[str, Any]:
    columns = {name: getattr(report, name) for name in _OF_INSTANCE}
    memory = {name: reading(report, name) for name in ("memory_total_bytes", "memory_used_bytes")}
    return columns | memory | {"profile": report.profile or ""}
