"""C28: a card in MIG mode, and one whose parent fields are forbidden."""

from __future__ import annotations

from simulator.hardware import SimProcess
from tests.agent.conftest import OpenDoor
from tests.agent.world import MIB, card, cut_card, mig_uuid, slice_3g

NO_PERMISSION = 4
LEFT = slice_3g(1, 1, start=0, memory_used_bytes=36000 * MIB)
RIGHT = slice_3g(2, 2, start=4)


def test_c28_a_cut_card_reports_its_slices_and_no_utilisation(open_door: OpenDoor) -> None:
    door = open_door(cut_card(0, LEFT, RIGHT, memory_used_bytes=38 * MIB))

    gpu = door.report().gpus[0]

    assert (gpu.mig_mode_current, gpu.mig_mode_pending) == (True, True)
    assert gpu.utilization_percent is None
    assert gpu.field_errors["utilization_percent"] == "not_supported"
    assert gpu.memory_used_bytes == 38 * MIB
    left, right = gpu.mig_instances
    assert (left.uuid, left.profile, left.gpu_instance_id) == (mig_uuid(0xB1), "3g.40gb", 1)
    assert (left.compute_instance_id, left.compute_slices) == (0, 3)
    assert (left.placement_start, left.placement_size) == (0, 4)
    assert (right.placement_start, right.placement_size) == (4, 4)
    assert (left.memory_used_bytes, left.memory_total_bytes) == (36000 * MIB, 40192 * MIB)


def test_c28_forbidden_parent_fields_do_not_stop_the_slices(open_door: OpenDoor) -> None:
    forbidden = {
        "nvmlDeviceGetMemoryInfo": NO_PERMISSION,
        "nvmlDeviceGetGpuInstanceById": NO_PERMISSION,
        "nvmlDeviceGetComputeRunningProcesses": NO_PERMISSION,
    }
    process = SimProcess(pid=41, memory_used_bytes=MIB, gpu_instance_id=1, compute_instance_id=0)
    door = open_door(cut_card(0, LEFT, RIGHT, errors=forbidden, processes=[process]))

    gpu = door.report().gpus[0]

    assert (gpu.state, gpu.memory_kind, gpu.memory_used_bytes) == ("ok", "unknown", None)
    assert gpu.field_errors["memory_used_bytes"] == "no_permission"
    left, right = gpu.mig_instances
    assert (left.memory_used_bytes, right.memory_used_bytes) == (36000 * MIB, 0)
    assert (left.placement_start, left.placement_size) == (None, None)
    assert left.field_errors == {
        "placement_start": "no_permission",
        "placement_size": "no_permission",
    }
    assert [each.pid for each in gpu.processes or ()] == [41]  # read slice by slice


def test_c28_a_pending_change_is_told_apart_from_the_mode(open_door: OpenDoor) -> None:
    door = open_door(card(0, mig_pending=True))

    gpu = door.report().gpus[0]

    assert (gpu.mig_mode_current, gpu.mig_mode_pending) == (False, True)
    assert gpu.mig_instances == ()


def test_a_card_without_mig_says_so(open_door: OpenDoor) -> None:
    door = open_door(card(0, mig_capable=False))

    gpu = door.report().gpus[0]

    assert (gpu.mig_mode_current, gpu.mig_mode_pending) == (None, None)
    assert gpu.field_errors == {"mig_mode_current": "not_supported"}


def test_processes_of_a_cut_card_name_their_slice(open_door: OpenDoor) -> None:
    process = SimProcess(pid=41, memory_used_bytes=MIB, gpu_instance_id=2, compute_instance_id=0)
    door = open_door(cut_card(0, LEFT, RIGHT, processes=[process]))

    (seen,) = door.report().gpus[0].processes or ()

    assert (seen.pid, seen.gpu_instance_id, seen.compute_instance_id) == (41, 2, 0)


def test_slices_made_between_two_reports_are_seen(open_door: OpenDoor) -> None:
    door = open_door(cut_card(0, LEFT))
    assert len(door.report().gpus[0].mig_instances) == 1
    door.change(0, instances=[RIGHT])

    (instance,) = door.report().gpus[0].mig_instances

    assert instance.uuid == mig_uuid(0xB2)
