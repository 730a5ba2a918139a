"""C18: NVML is held under a lease and let go of on request, so that we never block a change."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from simulator.nvml.library import FUNCTIONS, FakeNvml, Refused
from tests.agent.conftest import OpenDoor
from tests.agent.door import Door, our_threads, wait_until
from tests.agent.kubelet import kubelet, pod
from tests.agent.world import card, gpu_uuid


def test_c18_nvml_is_not_open_before_the_first_report(open_door: OpenDoor) -> None:
    door = open_door(card(0))

    assert door.ask("GET", "/healthz")[0] == 200
    assert (door.fake.init_count, door.fake.shutdown_count) == (0, 0)


def test_c18_reports_share_one_opening(open_door: OpenDoor) -> None:
    door = open_door(card(0))

    for _ in range(3):
        door.report()

    assert (door.fake.init_count, door.fake.shutdown_count) == (1, 0)


def test_c18_reports_at_the_same_time_share_it_too(open_door: OpenDoor) -> None:
    door = open_door(card(0))

    with ThreadPoolExecutor(8) as pool:
        reports = list(pool.map(lambda _: door.report_alone(), range(40)))

    assert {report.state for report in reports} == {"ok"}
    assert sorted(report.sequence for report in reports) == list(range(1, 41))
    assert door.fake.init_count == 1


def test_c18_a_release_closes_nvml_before_it_answers(open_door: OpenDoor) -> None:
    door = open_door(card(0))
    door.report()

    status, answer = door.release(60)

    assert (status, answer) == (200, {"state": "paused", "seconds": 60})
    assert (door.fake.init_count, door.fake.shutdown_count) == (1, 1)
    assert "xids" not in our_threads()


def test_c18_reports_in_the_window_say_paused_and_why_and_open_nothing(
    open_door: OpenDoor,
) -> None:
    door = open_door(card(0))
    door.report()
    door.release(60, "the driver is being upgraded")

    report = door.report()

    assert (report.state, report.reason) == ("paused", "the driver is being upgraded")
    assert (report.gpus, report.xids_from) == ((), None)
    assert (door.fake.init_count, door.fake.shutdown_count) == (1, 1)


def test_c18_pods_are_still_listed_in_the_window_with_the_last_known_cards(
    open_door: OpenDoor,
) -> None:
    door = open_door(card(0))
    door.report()
    door.release(60)

    with kubelet(door.folder / "kubelet.sock", pod("train", main=[("gpu", ["nvidia0"])])):
        pods = door.report().pods

    assert pods is not None
    assert pods[0].devices[0].gpu_uuid == gpu_uuid(0xA0)


def test_c18_the_agent_comes_back_by_itself_at_the_windows_end(open_door: OpenDoor) -> None:
    door = open_door(card(0))
    door.report()
    door.release(1)
    assert door.report().state == "paused"

    wait_until(lambda: door.report().state == "ok")

    assert (door.fake.init_count, door.fake.shutdown_count) == (2, 1)


def test_c18_another_release_sets_the_window_anew(open_door: OpenDoor) -> None:
    door = open_door(card(0))
    door.release(1, "first")
    door.release(60, "second")
    time.sleep(1.1)

    report = door.report()

    assert (report.state, report.reason) == ("paused", "second")


def test_c18_nvml_is_closed_when_nobody_asks_any_more(open_door: OpenDoor) -> None:
    door = open_door(card(0), lease_seconds=0.3)
    door.report()
    assert door.nvml_is_open

    wait_until(lambda: not door.nvml_is_open)

    assert door.report().state == "ok"
    assert door.fake.init_count == 2


def test_c18_each_report_renews_the_lease(open_door: OpenDoor) -> None:
    door = open_door(card(0), lease_seconds=2)
    for _ in range(4):
        door.report()
        time.sleep(0.7)

    assert door.fake.init_count == 1


def test_c18_a_library_that_answers_nothing_is_opened_afresh(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = open_door(card(0))
    door.report()
    with monkeypatch.context() as patch:
        patch.delitem(FUNCTIONS, "nvmlDeviceGetCount_v2")
        assert door.report().state == "error"
    assert not door.nvml_is_open

    assert door.report().state == "ok"
    assert (door.fake.init_count, door.fake.shutdown_count) == (2, 1)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"\xff\xfe",
        b"[1]",
        json.dumps({"seconds": 0, "reason": "x"}).encode(),
        json.dumps({"seconds": 601, "reason": "x"}).encode(),
        json.dumps({"seconds": 60, "reason": ""}).encode(),
        json.dumps({"seconds": 60, "reason": "x" * 501}).encode(),
        json.dumps({"seconds": "60", "reason": "x"}).encode(),
        json.dumps({"seconds": 60, "reason": "x", "more": 1}).encode(),
    ],
)
def test_a_bad_release_is_refused_with_a_sentence_and_pauses_nothing(
    open_door: OpenDoor, body: bytes
) -> None:
    door = open_door(card(0))

    status, answer = door.ask("POST", "/v1/release", body)

    assert status == 400
    assert answer["error"]
    assert door.report().state == "ok"


class Hang:
    """Makes NVML's count hang until ``over`` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.over = threading.Event()
        body = FUNCTIONS[name]

        def hang(*arguments: object) -> None:
            self.over.wait(30)
            body(*arguments)

        monkeypatch.setitem(FUNCTIONS, name, hang)


def seconds_of_report(door: Door) -> tuple[float, str | None]:
    started = time.monotonic()
    report = door.report()
    assert report.state == "error"
    return time.monotonic() - started, report.reason


def test_a_hung_nvml_call_is_a_sentence_within_the_time_limit(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = open_door(card(0), read_seconds=1)
    door.report()
    hang = Hang(monkeypatch, "nvmlDeviceGetUtilizationRates")

    seconds, reason = seconds_of_report(door)
    assert seconds < 2.5
    assert reason is not None
    assert "NVML has not answered for" in reason

    seconds, _ = seconds_of_report(door)
    assert seconds < 1  # no second request waits behind the hung call
    assert door.ask("GET", "/healthz")[0] == 200

    hang.over.set()
    wait_until(lambda: door.report().state == "ok")


def test_a_slow_opening_is_told_from_a_hang(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = open_door(card(0), read_seconds=0.3)
    hang = Hang(monkeypatch, "nvmlInitWithFlags")

    _, reason = seconds_of_report(door)

    assert reason is not None
    assert "still being opened" in reason
    hang.over.set()
    wait_until(lambda: door.report().state == "ok")
    assert door.fake.init_count == 1


def test_c18_a_release_while_nvml_hangs_is_refused_and_kept_for_when_it_answers(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = open_door(card(0), read_seconds=0.3)
    door.report()
    hang = Hang(monkeypatch, "nvmlDeviceGetUtilizationRates")
    assert door.report().state == "error"

    status, answer = door.release(60)

    assert status == 503
    assert "NVML has not answered" in answer["error"]
    hang.over.set()
    wait_until(lambda: not door.nvml_is_open)
    assert door.report().state == "paused"


def test_c18_a_release_that_can_not_close_nvml_says_so(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_library: FakeNvml) -> None:
        raise Refused(999)

    door = open_door(card(0))
    door.report()
    with monkeypatch.context() as patch:
        patch.setitem(FUNCTIONS, "nvmlShutdown", refuse)
        status, answer = door.release(60)

    assert status == 503
    assert "NVML can't be closed" in answer["error"]
    door.fake.shutdown_count += 1  # nobody but us knows that it was refused


def test_stopping_does_not_wait_for_ever_for_a_hung_nvml(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = open_door(card(0), read_seconds=0.3)
    door.report()
    hang = Hang(monkeypatch, "nvmlDeviceGetUtilizationRates")
    assert door.report().state == "error"

    started = time.monotonic()
    let_go = door.stop()

    assert not let_go
    assert time.monotonic() - started < 2
    hang.over.set()
    wait_until(lambda: not door.nvml_is_open)
