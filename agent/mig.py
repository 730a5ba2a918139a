"""MIG devices of one card (contracts.md 6.6)."""

from __future__ import annotations

from typing import Any

from agent import nvml
from agent.contract.report import MigInstance
from agent.fields import Fields


def mig_handles(parent: Fields) -> list[nvml.Handle]:
    """Handles of the card's MIG devices. Holes in their numbering are normal."""
    count = parent.read("mig_instances", "nvmlDeviceGetMaxMigDeviceCount") or 0
    try:
        slots = [
            nvml.found("nvmlDeviceGetMigDeviceHandleByIndex", parent.handle, slot)
            for slot in range(count)
        ]
    except nvml.FieldUnreadableError as error:
        parent.errors["mig_instances"] = error.reason
        return []
    return [handle for handle in slots if handle is not None]


def read_mig_instance(parent: nvml.Handle, handle: nvml.Handle) -> MigInstance | None:
    """One MIG device, or None when it was destroyed under our eyes.

    Raises ``nvml.CardLostError``.
    """
    fields = Fields(handle)
    uuid = fields.read("uuid", "nvmlDeviceGetUUID")
    if uuid is None:
        return None
    name = fields.read("profile", "nvmlDeviceGetName")
    gpu_instance_id = fields.read("gpu_instance_id", "nvmlDeviceGetGpuInstanceId")
    attributes = fields.read("compute_slices", "nvmlDeviceGetAttributes_v2")
    memory = fields.read_memory()
    placement = _placement(fields, parent, gpu_instance_id)
    return MigInstance(
        uuid=uuid,
        profile=profile_of(name),
        gpu_instance_id=gpu_instance_id,
        compute_instance_id=fields.read("compute_instance_id", "nvmlDeviceGetComputeInstanceId"),
        compute_slices=attributes and attributes.computeInstanceSliceCount,
        placement_start=placement and placement.start,
        placement_size=placement and placement.size,
        memory_total_bytes=memory and memory.total,
        memory_used_bytes=memory and memory.used,
        field_errors=fields.errors,
    )


def profile_of(name: str | None) -> str | None:
    """``3g.40gb`` of ``NVIDIA H100 80GB HBM3 MIG 3g.40gb``; None where the name has no profile."""
    _, separator, profile = (name or "").rpartition(" MIG ")
    return profile if separator else None


def _placement(fields: Fields, parent: nvml.Handle, gpu_instance_id: int | None) -> Any | None:
    if gpu_instance_id is None:
        return None
    try:
        instance = nvml.call("nvmlDeviceGetGpuInstanceById", parent, gpu_instance_id)
        return nvml.call("nvmlGpuInstanceGetInfo", instance).placement
    except nvml.FieldUnreadableError as error:  # privileged: without it the instance still counts
        fields.errors["placement_start"] = fields.errors["placement_size"] = error.reason
        return None
