"""Cards: enumeration, identity, load. What is refused follows contracts.md 6.3 and 6.7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pynvml

from simulator.nvml.library import (
    FakeNvml,
    Refused,
    Target,
    device_function,
    function,
    number,
    put,
    refuse_as_ordered,
)

NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
NO_INSTANCE = 0xFFFFFFFF

# Functions of a whole card that write one number through their last argument.
CARD_NUMBERS: dict[str, Callable[[FakeNvml, Target], int | None]] = {
    "nvmlDeviceGetIndex": lambda library, target: library.world.cards.index(target.card),
    "nvmlDeviceGetTemperature": lambda _, target: target.card.temperature_celsius,
    "nvmlDeviceGetPowerUsage": lambda library, target: library.world.milliwatts(target.card),
    "nvmlDeviceGetEnforcedPowerLimit": lambda _, target: _discrete(
        target, target.card.power_limit_watts * 1000
    ),
    "nvmlDeviceGetTotalEccErrors": lambda _, target: _discrete(
        target, target.card.ecc_uncorrectable
    ),
}


def _discrete(target: Target, value: int) -> int | None:
    """Integrated GPUs have neither a power limit nor ECC (contracts.md 6.7)."""
    return None if target.card.unified_memory else value


def _register_number(name: str, value: Callable[[FakeNvml, Target], int | None]) -> None:
    @device_function(name, on_mig=False)
    def _answer(library: FakeNvml, target: Target, *arguments: Any) -> None:
        answer = value(library, target)
        if answer is None:
            raise Refused(NOT_SUPPORTED)
        put(arguments[-1], answer)


for _name, _value in CARD_NUMBERS.items():
    _register_number(_name, _value)


@function("nvmlDeviceGetCount_v2")
def _count(library: FakeNvml, out: Any) -> None:
    put(out, len(library.world.cards))


@function("nvmlDeviceGetHandleByIndex_v2")
def _handle_by_index(library: FakeNvml, index: Any, out: Any) -> None:
    cards = library.world.cards
    if number(index) >= len(cards):
        raise Refused(pynvml.NVML_ERROR_INVALID_ARGUMENT)
    card = cards[number(index)]
    if card.lost:
        raise Refused(pynvml.NVML_ERROR_GPU_IS_LOST)
    refuse_as_ordered(card, "nvmlDeviceGetHandleByIndex_v2")
    library.put_handle(out, card.uuid)


@device_function("nvmlDeviceGetUUID")
def _uuid(_: FakeNvml, target: Target, buffer: Any, _length: Any) -> None:
    buffer.value = (target.instance or target.card).uuid.encode()


@device_function("nvmlDeviceGetName")
def _device_name(_: FakeNvml, target: Target, buffer: Any, _length: Any) -> None:
    suffix = f" MIG {target.instance.profile}" if target.instance else ""
    buffer.value = (target.card.name + suffix).encode()


@device_function("nvmlDeviceGetSerial", on_mig=False)
def _serial(_: FakeNvml, target: Target, buffer: Any, _length: Any) -> None:
    if not target.card.serial:
        raise Refused(NOT_SUPPORTED)  # GeForce (contracts.md 6.7)
    buffer.value = target.card.serial.encode()


@device_function("nvmlDeviceGetPciInfo_v3", on_mig=False)
def _pci(_: FakeNvml, target: Target, out: Any) -> None:
    out._obj.busId = target.card.pci_bus_id.encode()
    out._obj.pciDeviceId = target.card.pci_device_id


@device_function("nvmlDeviceGetCudaComputeCapability")
def _compute_capability(_: FakeNvml, target: Target, major: Any, minor: Any) -> None:
    put(major, target.card.compute_capability[0])
    put(minor, target.card.compute_capability[1])


def _memory(target: Target) -> tuple[int, int, int]:
    """Total, used and reserved bytes."""
    if target.instance:
        return target.instance.memory_total_bytes, target.instance.memory_used_bytes, 0
    card = target.card
    if card.unified_memory:
        raise Refused(NOT_SUPPORTED)  # C27
    return card.memory_total_bytes, card.memory_used_bytes, card.memory_reserved_bytes


@device_function("nvmlDeviceGetMemoryInfo")
def _memory_v1(_: FakeNvml, target: Target, out: Any) -> None:
    total, used, reserved = _memory(target)
    info = out._obj
    info.total, info.used, info.free = total, used + reserved, total - used - reserved


@device_function("nvmlDeviceGetMemoryInfo_v2")
def _memory_v2(_: FakeNvml, target: Target, out: Any) -> None:
    info = out._obj
    if info.version != pynvml.nvmlMemory_v2:
        raise Refused(pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
    info.total, info.used, info.reserved = _memory(target)
    info.free = info.total - info.used - info.reserved


@device_function("nvmlDeviceGetUtilizationRates", on_mig=False)
def _utilization(library: FakeNvml, target: Target, out: Any) -> None:
    if target.card.mig_current:
        raise Refused(NOT_SUPPORTED)
    percent = library.world.utilization_percent(target.card)
    out._obj.gpu, out._obj.memory = percent, percent * 6 // 10


@device_function("nvmlDeviceGetTemperatureV", on_mig=False)
def _temperature_v(_: FakeNvml, target: Target, out: Any) -> None:
    if out._obj.version != pynvml.nvmlTemperature_v1:
        raise Refused(pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
    out._obj.temperature = target.card.temperature_celsius


@device_function(
    "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3"
)
def _processes(_: FakeNvml, target: Target, count: Any, entries: Any) -> None:
    processes = target.card.processes
    if target.instance:
        wanted = target.instance.gpu_instance_id
        processes = [each for each in processes if each.gpu_instance_id == wanted]
    room = number(count._obj)
    put(count, len(processes))
    if room < len(processes):
        raise Refused(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
    for entry, process in zip(entries or (), processes, strict=False):
        entry.pid = process.pid
        entry.usedGpuMemory = _or(
            process.memory_used_bytes, pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value
        )
        entry.gpuInstanceId = _or(process.gpu_instance_id, NO_INSTANCE)
        entry.computeInstanceId = _or(process.compute_instance_id, NO_INSTANCE)


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


@device_function(
    "nvmlDeviceGetGraphicsRunningProcesses_v2",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
)
def _no_processes(_: FakeNvml, _target: Target, count: Any, _entries: Any) -> None:
    put(count, 0)
