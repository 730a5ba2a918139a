"""What one simulated node's hardware is and does right now.

The simulated kubelet writes this as a JSON file (atomically, on change); the simulated NVML in the
agent's process reads it. It is the whole interface between the two, so that either can be tested
alone.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec


class Instance(msgspec.Struct, kw_only=True):
    """One MIG device. Placement in memory slices (contracts.md 4.2)."""

    uuid: str
    profile: str  # "3g.40gb"
    profile_id: int  # the GI profile id that `nvidia-smi mig -lgip` prints: 19, 14, 9, 5, 0 …
    gpu_instance_id: int
    compute_instance_id: int = 0
    compute_slices: int
    start: int
    size: int
    memory_total_bytes: int
    memory_used_bytes: int = 0


class SimProcess(msgspec.Struct, kw_only=True):
    """One process on a card, with its host pid."""

    pid: int
    memory_used_bytes: int | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None


class SimXid(msgspec.Struct, kw_only=True):
    """An XID that happened; ``number`` grows by one per event on the node."""

    number: int
    gpu_uuid: str
    code: int


class Card(msgspec.Struct, kw_only=True):
    """One card.

    ``errors`` maps an NVML function, with its version suffix or (for all versions) without, to the
    error code that it answers for the card itself; MIG devices on it are not concerned.
    """

    index: int
    uuid: str
    name: str
    serial: str
    pci_bus_id: str
    pci_device_id: int  # 0x233010DE
    compute_capability: tuple[int, int]
    architecture: int  # contracts.md 6.2: 7 Ampere, 8 Ada, 9 Hopper, 10 Blackwell, 6 Turing
    memory_total_bytes: int
    memory_used_bytes: int = 0
    memory_reserved_bytes: int = 0
    unified_memory: bool = False  # both memory calls answer NotSupported (C27)
    utilization_percent: int = 0  # mean; the simulated NVML adds a wobble of its own in time
    wobble_percent: int = 0
    temperature_celsius: int = 30
    power_watts: int = 60
    power_limit_watts: int = 400
    ecc_uncorrectable: int = 0
    mig_capable: bool = False
    mig_current: bool = False
    mig_pending: bool = False
    instances: list[Instance] = []
    processes: list[SimProcess] = []
    lost: bool = False  # handles and calls answer GpuIsLost (C25)
    absent: bool = False  # not counted at all any more
    errors: dict[str, int] = {}


class Hardware(msgspec.Struct, kw_only=True):
    """One node's hardware file."""

    node_name: str
    driver_version: str
    nvml_version: str
    cuda_driver_version: int  # 13000 is 13.0
    cards: list[Card] = []
    xids: list[SimXid] = []
    frozen: bool = False  # no wobble: every reading is the mean
    init_error: int | None = None  # nvmlInit answers this code
    lie: dict[str, str] = {}  # report faults: {"as_node": …}, {"garbage": …}, {"silent": …}


def write(path: Path, hardware: Hardware) -> None:
    """Replace the file in one step, so that a reader never sees half of it."""
    temporary = path.with_suffix(".new")
    temporary.write_bytes(msgspec.json.encode(hardware))
    os.replace(temporary, path)


def read(path: Path) -> Hardware:
    """Raises ``OSError`` when there is no file, ``msgspec.DecodeError`` when it is not ours."""
    return msgspec.json.decode(path.read_bytes(), type=Hardware)
