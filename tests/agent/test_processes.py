"""C29: process lists that lie."""

from __future__ import annotations

from pathlib import Path

from simulator.hardware import SimProcess
from tests.agent.conftest import OpenDoor
from tests.agent.world import GIB, MIB, card, cut_card, slice_3g

LYING = [
    SimProcess(pid=1184, memory_used_bytes=0),
    SimProcess(pid=0, memory_used_bytes=4294967295),
    SimProcess(pid=4294967295, memory_used_bytes=None),
    SimProcess(pid=20884, memory_used_bytes=512 * MIB),
]


def test_c29_impossible_entries_are_dropped_and_counted(open_door: OpenDoor) -> None:
    door = open_door(card(0, processes=LYING, memory_used_bytes=700 * MIB))

    gpu = door.report().gpus[0]

    assert [each.pid for each in gpu.processes or ()] == [1184, 20884]
    assert gpu.unreadable_processes == 2
    assert gpu.memory_used_bytes == 700 * MIB  # never the sum of the processes


def test_c29_more_memory_than_the_card_has_is_impossible(open_door: OpenDoor) -> None:
    door = open_door(card(0, processes=[SimProcess(pid=9, memory_used_bytes=81 * GIB)]))

    gpu = door.report().gpus[0]

    assert (gpu.processes, gpu.unreadable_processes) == ((), 1)


def test_c29_unknown_memory_stays_unknown(open_door: OpenDoor) -> None:
    door = open_door(card(0, processes=[SimProcess(pid=9, memory_used_bytes=None)]))

    (process,) = door.report().gpus[0].processes or ()

    assert (process.pid, process.memory_used_bytes) == (9, None)


def test_c29_without_the_hosts_pid_namespace_there_are_no_names(
    open_door: OpenDoor, tmp_path: Path
) -> None:
    write_comm(tmp_path, 20884, b"python3\n")
    door = open_door(card(0, processes=LYING))

    assert [each.name for each in door.report().gpus[0].processes or ()] == [None, None]


def test_c29_with_the_hosts_pid_namespace_names_are_read_and_the_vanished_are_skipped(
    open_door: OpenDoor, tmp_path: Path
) -> None:
    write_comm(tmp_path, 20884, b"train\xff<b>\n")  # 1184 has ended between the two calls
    door = open_door(card(0, processes=LYING), host_pid=True)

    gpu = door.report().gpus[0]

    assert [(each.pid, each.name) for each in gpu.processes or ()] == [(20884, "train\ufffd<b>")]
    assert gpu.unreadable_processes == 2


def test_a_list_that_is_forbidden_is_unknown_and_not_empty(open_door: OpenDoor) -> None:
    door = open_door(card(0, errors={"nvmlDeviceGetComputeRunningProcesses": 4}))

    gpu = door.report().gpus[0]

    assert gpu.processes is None
    assert gpu.field_errors["processes"] == "no_permission"


def test_no_processes_is_an_empty_list(open_door: OpenDoor) -> None:
    door = open_door(card(0), cut_card(1, slice_3g(1, 1, start=0)))

    assert [gpu.processes for gpu in door.report().gpus] == [(), ()]


def write_comm(host_root: Path, pid: int, name: bytes) -> None:
    folder = host_root / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "comm").write_bytes(name)
