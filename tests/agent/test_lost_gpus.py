"""C25: one lost GPU, a count that falls, a library that doesn't open."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.nvml.library import FUNCTIONS
from tests.agent.conftest import OpenDoor
from tests.agent.world import card, gpu_uuid


def test_c25_one_lost_gpu_leaves_the_others_reporting(open_door: OpenDoor) -> None:
    door = open_door(*(card(index, utilization_percent=50) for index in range(4)))
    door.report()
    door.change(2, lost=True)

    report = door.report()

    assert report.state == "ok"
    assert [gpu.state for gpu in report.gpus] == ["ok", "ok", "lost", "ok"]
    assert [gpu.utilization_percent for gpu in report.gpus] == [50, 50, None, 50]
    assert report.gpus[2].error is not None
    assert "drain the node" in report.gpus[2].error


def test_c25_a_lost_gpu_keeps_its_last_known_uuid(open_door: OpenDoor) -> None:
    door = open_door(card(0), card(1))
    door.report()
    door.change(1, lost=True)

    assert door.report().gpus[1].uuid == gpu_uuid(0xA1)


def test_c25_a_gpu_that_was_lost_before_we_came_has_no_uuid(open_door: OpenDoor) -> None:
    door = open_door(card(0), card(1, lost=True))

    report = door.report()

    assert [gpu.uuid for gpu in report.gpus] == [gpu_uuid(0xA0), None]


def test_c25_a_gpu_that_is_lost_while_it_is_read_is_lost(open_door: OpenDoor) -> None:
    door = open_door(card(0, errors={"nvmlDeviceGetPowerUsage": 15}), card(1))
    door.change(0, errors={})
    door.report()
    door.change(0, errors={"nvmlDeviceGetPowerUsage": 15})

    lost, other = door.report().gpus

    assert (lost.state, lost.uuid, lost.name) == ("lost", gpu_uuid(0xA0), None)
    assert other.state == "ok"


def test_c25_when_the_count_falls_the_cards_that_move_up_keep_their_own_uuid(
    open_door: OpenDoor,
) -> None:
    door = open_door(*(card(index) for index in range(4)))
    door.report()
    door.change(2, absent=True)
    door.report()
    door.change(3, lost=True)

    report = door.report()

    assert [gpu.uuid for gpu in report.gpus] == [gpu_uuid(0xA0), gpu_uuid(0xA1), gpu_uuid(0xA3)]
    assert report.gpus[2].state == "lost"


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (9, "installing the NVIDIA driver"),
        (12, "runtime class"),
        (18, "reboot the node"),
        (999, "kernel log"),
    ],
)
def test_c25_when_nvml_does_not_open_the_report_says_so_and_what_to_do(
    open_door: OpenDoor, code: int, advice: str
) -> None:
    door = open_door(card(0))
    door.write(init_error=code)

    report = door.report()

    assert (report.state, report.gpus) == ("error", ())
    assert report.reason is not None
    assert advice in report.reason


def test_c25_the_next_report_tries_again(open_door: OpenDoor) -> None:
    door = open_door(card(0))
    door.write(init_error=999)
    assert door.report().state == "error"
    door.write(init_error=None)

    assert door.report().state == "ok"


def test_one_gpu_that_answers_unknown_error_is_an_entry_of_its_own(open_door: OpenDoor) -> None:
    door = open_door(card(0), card(1, errors={"nvmlDeviceGetHandleByIndex": 999}))

    healthy, broken = door.report().gpus

    assert healthy.state == "ok"
    assert broken.state == "error"
    assert broken.error is not None
    assert "Unknown" in broken.error


def test_one_unreadable_field_spoils_no_other(open_door: OpenDoor) -> None:
    errors = {"nvmlDeviceGetSerial": 999, "nvmlDeviceGetTotalEccErrors": 3, "nvmlDeviceGetName": 4}
    door = open_door(card(0, errors=errors, temperature_celsius=61))

    gpu = door.report().gpus[0]

    assert (gpu.state, gpu.temperature_celsius, gpu.uuid) == ("ok", 61, gpu_uuid(0xA0))
    assert (gpu.serial, gpu.ecc_uncorrectable_volatile, gpu.name) == (None, None, None)
    assert gpu.field_errors == {
        "serial": "error",
        "ecc_uncorrectable_volatile": "not_supported",
        "name": "no_permission",
    }


def test_text_that_is_no_utf8_spoils_only_its_field(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hostile(_library: Any, _handle: Any, buffer: Any, _length: Any) -> None:
        buffer.value = b"\xff\xfe<script>"

    door = open_door(card(0))
    monkeypatch.setitem(FUNCTIONS, "nvmlDeviceGetSerial", hostile)

    gpu = door.report().gpus[0]

    assert (gpu.state, gpu.serial, gpu.uuid) == ("ok", None, gpu_uuid(0xA0))
    assert gpu.field_errors == {"serial": "error"}
