"""C27: GPUs that share memory with the CPU; and which of NVML's two numbers is "used"."""

from __future__ import annotations

from simulator.hardware import SimProcess
from tests.agent.conftest import OpenDoor
from tests.agent.world import GIB, MIB, card, integrated

BOTH_NOT_SUPPORTED = {"nvmlDeviceGetMemoryInfo": 3}


def test_c27_a_gb10_has_shared_memory_and_no_total(open_door: OpenDoor) -> None:
    processes = [
        SimProcess(pid=10, memory_used_bytes=43 * MIB),
        SimProcess(pid=11, memory_used_bytes=18 * MIB),
    ]
    door = open_door(integrated(temperature_celsius=38, processes=processes))

    gpu = door.report().gpus[0]

    assert (gpu.memory_kind, gpu.memory_total_bytes) == ("unified", None)
    assert gpu.memory_used_bytes == 61 * MIB  # the sum of its processes
    assert (gpu.utilization_percent, gpu.temperature_celsius) == (0, 38)
    assert gpu.field_errors["memory_total_bytes"] == "not_supported"


def test_c27_a_total_of_zero_is_unknown(open_door: OpenDoor) -> None:
    door = open_door(
        integrated(unified_memory=False, memory_total_bytes=0, memory_reserved_bytes=0)
    )

    gpu = door.report().gpus[0]

    assert (gpu.memory_kind, gpu.memory_total_bytes) == ("unified", None)


def test_c27_a_jetson_is_listed_with_what_it_can_tell(open_door: OpenDoor) -> None:
    silent = {
        "nvmlDeviceGetPowerUsage": 3,
        "nvmlDeviceGetTemperature": 3,
        "nvmlDeviceGetUtilizationRates": 3,
        "nvmlDeviceGetUUID": 3,
    }
    garbage = [SimProcess(pid=4294967295, memory_used_bytes=7)]
    door = open_door(integrated(name="Orin (nvgpu)", errors=silent, processes=garbage))

    gpu = door.report().gpus[0]

    assert (gpu.state, gpu.name, gpu.memory_kind) == ("ok", "Orin (nvgpu)", "unified")
    assert gpu.utilization_percent is None
    assert gpu.temperature_celsius is None
    assert gpu.power_watts is None
    assert gpu.memory_used_bytes is None  # a list with garbage in it has no sum
    assert gpu.unreadable_processes == 1


def test_c27_a_lost_card_is_not_taken_for_unified_memory(open_door: OpenDoor) -> None:
    door = open_door(integrated(unified_memory=False, errors={"nvmlDeviceGetMemoryInfo": 15}))

    gpu = door.report().gpus[0]

    assert (gpu.state, gpu.memory_kind) == ("lost", "unknown")


def test_c27_not_supported_on_a_card_with_memory_of_its_own_is_unknown(
    open_door: OpenDoor,
) -> None:
    door = open_door(card(0, errors=BOTH_NOT_SUPPORTED))

    gpu = door.report().gpus[0]

    assert (gpu.memory_kind, gpu.memory_total_bytes, gpu.memory_used_bytes) == (
        "unknown",
        None,
        None,
    )


def test_c27_no_permission_on_an_integrated_card_keeps_its_own_meaning(
    open_door: OpenDoor,
) -> None:
    door = open_door(integrated(errors={"nvmlDeviceGetMemoryInfo": 4}))

    gpu = door.report().gpus[0]

    assert gpu.memory_kind == "unknown"
    assert gpu.field_errors["memory_total_bytes"] == "no_permission"


def test_used_memory_leaves_out_what_the_driver_reserves(open_door: OpenDoor) -> None:
    door = open_door(card(0, memory_used_bytes=3 * GIB, memory_reserved_bytes=GIB))

    gpu = door.report().gpus[0]

    assert (gpu.memory_kind, gpu.memory_total_bytes) == ("dedicated", 80 * GIB)
    assert gpu.memory_used_bytes == 3 * GIB


def test_an_old_driver_without_the_new_calls_is_read_by_the_old_ones(
    open_door: OpenDoor,
) -> None:
    function_not_found = {
        "nvmlDeviceGetMemoryInfo_v2": 13,
        "nvmlDeviceGetTemperatureV": 13,
        "nvmlDeviceGetComputeRunningProcesses_v3": 13,
    }
    process = SimProcess(pid=77, memory_used_bytes=GIB)
    old = card(
        0,
        errors=function_not_found,
        memory_used_bytes=3 * GIB,
        memory_reserved_bytes=GIB,
        temperature_celsius=55,
        processes=[process],
    )
    door = open_door(old)

    gpu = door.report().gpus[0]

    assert gpu.memory_used_bytes == 4 * GIB  # the old call counts the driver's own share too
    assert gpu.temperature_celsius == 55
    assert [each.pid for each in gpu.processes or ()] == [77]
