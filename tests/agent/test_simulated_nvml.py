"""The simulated NVML refuses what the real one refuses, beneath the real pynvml."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pynvml
import pytest

from simulator import hardware, nvml
from simulator.hardware import Card, Hardware
from simulator.nvml.library import FakeNvml
from tests.agent.world import GIB, card, cut_card, gpu_uuid, integrated, node, slice_3g


class Clock:
    """A clock that stands still until it is moved."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hardware.json"


@pytest.fixture
def library(path: Path, clock: Clock) -> Iterator[FakeNvml]:
    """Two cards, the second cut; NVML is opened."""
    cut = cut_card(1, slice_3g(1, 1, start=0), slice_3g(2, 2, start=4))
    hardware.write(path, node(card(0, utilization_percent=50, wobble_percent=20), cut))
    yield nvml.install(path, clock)
    nvml.uninstall()


@pytest.fixture
def opened(library: FakeNvml) -> FakeNvml:
    pynvml.nvmlInit()
    return library


def refused(code: int) -> AbstractContextManager[object]:
    """Expect the NVML error ``code``."""
    return pytest.raises(pynvml.nvmlExceptionClass(code))


def test_nothing_answers_before_init_and_after_shutdown(library: FakeNvml) -> None:
    with refused(pynvml.NVML_ERROR_UNINITIALIZED):
        pynvml.nvmlDeviceGetCount()
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlShutdown()

    with refused(pynvml.NVML_ERROR_UNINITIALIZED):
        pynvml.nvmlDeviceGetName(handle)
    with refused(pynvml.NVML_ERROR_UNINITIALIZED):
        pynvml.nvmlShutdown()
    assert (library.init_count, library.shutdown_count) == (1, 1)


def test_a_handle_of_an_earlier_opening_is_invalid(opened: FakeNvml) -> None:
    old = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()

    with refused(pynvml.NVML_ERROR_INVALID_ARGUMENT):
        pynvml.nvmlDeviceGetName(old)


def test_opening_is_counted_in_pairs(opened: FakeNvml) -> None:
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()

    assert pynvml.nvmlDeviceGetCount() == 2


def test_utilisation_is_not_supported_in_mig_mode(opened: FakeNvml) -> None:
    parent = pynvml.nvmlDeviceGetHandleByIndex(1)
    device = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 0)

    for handle in (parent, device):
        with refused(pynvml.NVML_ERROR_NOT_SUPPORTED):
            pynvml.nvmlDeviceGetUtilizationRates(handle)
    with refused(pynvml.NVML_ERROR_NOT_SUPPORTED):
        pynvml.nvmlDeviceGetPowerUsage(device)


def test_slots_without_a_mig_device_are_not_found(opened: FakeNvml) -> None:
    parent = pynvml.nvmlDeviceGetHandleByIndex(1)

    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(parent) == 7
    with refused(pynvml.NVML_ERROR_NOT_FOUND):
        pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 2)


def test_a_mig_handle_dies_with_its_device(opened: FakeNvml, path: Path) -> None:
    parent = pynvml.nvmlDeviceGetHandleByIndex(1)
    device = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 0)
    hardware.write(path, node(card(0), cut_card(1)))

    with refused(pynvml.NVML_ERROR_INVALID_ARGUMENT):
        pynvml.nvmlDeviceGetUUID(device)


def test_memory_v1_counts_what_the_driver_reserves(opened: FakeNvml, path: Path) -> None:
    hardware.write(path, node(card(0, memory_used_bytes=GIB, memory_reserved_bytes=GIB)))
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    old = pynvml.nvmlDeviceGetMemoryInfo(handle)
    new = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)

    assert (old.used, new.used, new.reserved) == (2 * GIB, GIB, GIB)
    assert old.free == new.free == 78 * GIB


def test_a_struct_of_another_version_is_refused(opened: FakeNvml) -> None:
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    with refused(pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH):
        pynvml.nvmlDeviceGetMemoryInfo(handle, version=0x03000028)


def test_an_integrated_gpu_has_no_memory_limit_or_ecc(opened: FakeNvml, path: Path) -> None:
    hardware.write(path, node(integrated(power_watts=12)))
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    assert pynvml.nvmlDeviceGetPowerUsage(handle) == 12_000
    for call in (
        pynvml.nvmlDeviceGetMemoryInfo,
        pynvml.nvmlDeviceGetEnforcedPowerLimit,
        pynvml.nvmlDeviceGetMigMode,
    ):
        with refused(pynvml.NVML_ERROR_NOT_SUPPORTED):
            call(handle)


def test_an_unsupported_event_registers_nothing(opened: FakeNvml) -> None:
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    event_set = pynvml.nvmlEventSetCreate()

    with refused(pynvml.NVML_ERROR_NOT_SUPPORTED):
        pynvml.nvmlDeviceRegisterEvents(handle, 0x18, event_set)
    pynvml.nvmlEventSetFree(event_set)
    with refused(pynvml.NVML_ERROR_INVALID_ARGUMENT):
        pynvml.nvmlEventSetWait(event_set, 0)


def test_a_function_that_it_does_not_know_is_not_supported(opened: FakeNvml) -> None:
    with refused(pynvml.NVML_ERROR_NOT_SUPPORTED):
        pynvml.nvmlDeviceGetFanSpeed(pynvml.nvmlDeviceGetHandleByIndex(0))


def test_readings_move_with_time_and_only_with_it(opened: FakeNvml, clock: Clock) -> None:
    def seen() -> tuple[int, int]:
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
        return rates.gpu, pynvml.nvmlDeviceGetPowerUsage(handle)

    first = seen()
    assert seen() == first
    readings = set()
    for _ in range(50):
        clock.now += 5
        readings.add(seen())

    assert len(readings) > 10
    assert all(30 <= percent <= 70 for percent, _ in readings)
    clock.now -= 50 * 5
    assert seen() == first


def test_a_frozen_world_shows_the_mean(opened: FakeNvml, path: Path) -> None:
    moving: Card = card(0, utilization_percent=50, wobble_percent=20)
    frozen: Hardware = node(moving, frozen=True)
    hardware.write(path, frozen)

    handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    assert pynvml.nvmlDeviceGetUtilizationRates(handle).gpu == 50


def test_uninstalling_leaves_pynvml_without_a_library(opened: FakeNvml, path: Path) -> None:
    nvml.uninstall()
    with refused(pynvml.NVML_ERROR_UNINITIALIZED):
        pynvml.nvmlDeviceGetCount()

    hardware.write(path, node(card(3)))
    nvml.install(path)
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    assert pynvml.nvmlDeviceGetUUID(handle) == gpu_uuid(0xA3)
