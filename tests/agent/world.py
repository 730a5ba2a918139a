"""Cards for the tests: what a case needs is said where it is needed, the rest is an H100's."""

from __future__ import annotations

from typing import Any

from simulator.hardware import Card, Hardware, Instance

GIB = 2**30
MIB = 2**20


def gpu_uuid(number: int) -> str:
    """``GPU-…a1`` of cases.md is ``gpu_uuid(0xa1)``."""
    return f"GPU-00000000-0000-4000-8000-{number:012x}"


def mig_uuid(number: int) -> str:
    """``MIG-…b1`` of cases.md is ``mig_uuid(0xb1)``."""
    return f"MIG-00000000-0000-4000-8000-{number:012x}"


def card(index: int, **changes: Any) -> Card:
    """An H100 with the uuid ``GPU-…a<index>``."""
    fields: dict[str, Any] = {
        "index": index,
        "uuid": gpu_uuid(0xA0 + index),
        "name": "NVIDIA H100 80GB HBM3",
        "serial": f"165012300000{index}",
        "pci_bus_id": f"00000000:{0x1B + 16 * index:02X}:00.0",
        "pci_device_id": 0x233010DE,
        "compute_capability": (9, 0),
        "architecture": 9,
        "memory_total_bytes": 80 * GIB,
        "memory_reserved_bytes": 512 * MIB,
        "power_limit_watts": 700,
        "mig_capable": True,
    }
    return Card(**(fields | changes))


def integrated(**changes: Any) -> Card:
    """A GB10, which shares the system's memory."""
    shared = {"name": "NVIDIA GB10", "serial": "", "mig_capable": False, "unified_memory": True}
    return card(0, **(shared | changes))


def slice_3g(number: int, gpu_instance_id: int, start: int, **changes: Any) -> Instance:
    """A 3g.40gb with the uuid ``MIG-…b<number>``."""
    fields: dict[str, Any] = {
        "uuid": mig_uuid(0xB0 + number),
        "profile": "3g.40gb",
        "profile_id": 9,
        "gpu_instance_id": gpu_instance_id,
        "compute_slices": 3,
        "start": start,
        "size": 4,
        "memory_total_bytes": 40192 * MIB,
    }
    return Instance(**(fields | changes))


def cut_card(index: int, *instances: Instance, **changes: Any) -> Card:
    """An H100 in MIG mode."""
    return card(index, mig_current=True, mig_pending=True, instances=list(instances), **changes)


def node(*cards: Card, **changes: Any) -> Hardware:
    """A node with these cards."""
    return Hardware(
        node_name="h100-01",
        driver_version="580.82.07",
        nvml_version="13.580.82.07",
        cuda_driver_version=13000,
        cards=list(cards),
        **changes,
    )
