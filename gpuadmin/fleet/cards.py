"""Storing the cards of one believed report: services of `fleet`, kept apart for their length."""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime
from typing import Any

import msgspec
from django.conf import settings

from agent.contract.report import Gpu as GpuReport
from agent.contract.report import MigInstance as InstanceReport
from gpuadmin.fleet.models import Gpu, MigInstance, Node
from gpuadmin.planning.reports import reading


def store_cards(
    node: Node, reports: tuple[GpuReport, ...], held: Set[str] | None, now: datetime
) -> list[Gpu]:
    """Update the node's cards; those no longer counted become missing, never silently gone (C25).

    ``held`` are the UUIDs of cards of which a pod holds a part, None when not known. Returns the
    cards of which this report had a reading.
    """
    known = {gpu.uuid: gpu for gpu in node.gpus.all()}
    told = {report.uuid for report in reports if report.uuid}
    read = []
    for report in reports:
        gpu = _known_card(known, report, told) or Gpu(node=node, first_seen=now)
        known.pop(gpu.uuid, None)
        gpu.uuid = report.uuid or gpu.uuid or unread_uuid(report.index)
        _take(gpu, report, held, now)
        gpu.save()
        if report.state == "ok":
            _store_instances(gpu, report.mig_instances)
            read.append(gpu)
    for gpu in known.values():
        _set_state(gpu, Gpu.State.MISSING, "The driver no longer counts this card.", now)
        gpu.save(update_fields=["state", "state_since", "error"])
    return read


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
    for name, value in _identity(report).items():
        setattr(gpu, name, value)
    for name, value in _readings(report).items():
        setattr(gpu, name, value)
    gpu.read_at = now
    gpu.idle_since = _idle_since(gpu, held, now)


def _set_state(gpu: Gpu, state: Gpu.State, error: str, now: datetime) -> None:
    if gpu.pk is None or gpu.state != state:
        gpu.state, gpu.state_since = state, now
    gpu.error = error


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
    """Since when the card is held and unused; None when it is not, or that can't be known (C28)."""
    measured = gpu.utilization_percent is not None and not gpu.mig_mode_current
    if held is None or gpu.uuid not in held or not measured:
        return None
    unused = (gpu.utilization_percent or 0) < settings.IDLE_PERCENT
    return (gpu.idle_since or now) if unused else None


def _store_instances(gpu: Gpu, reports: tuple[InstanceReport, ...]) -> None:
    known = {instance.uuid: instance for instance in gpu.instances.all()}
    for report in reports:
        instance = known.pop(report.uuid, None) or MigInstance(gpu=gpu, uuid=report.uuid)
        instance.profile = report.profile or ""
        instance.gpu_instance_id = report.gpu_instance_id
        instance.compute_instance_id = report.compute_instance_id
        instance.compute_slices = report.compute_slices
        instance.placement_start = report.placement_start
        instance.placement_size = report.placement_size
        instance.memory_total_bytes = report.memory_total_bytes
        instance.memory_used_bytes = report.memory_used_bytes
        instance.save()
    MigInstance.objects.filter(pk__in=[instance.pk for instance in known.values()]).delete()
