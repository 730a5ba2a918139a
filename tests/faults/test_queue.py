"""The queue dies, stalls, or repeats itself (faults 4, 5 and 18; C43)."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from gpuadmin.celery import app
from gpuadmin.operations import nudge
from tests.faults.agents import NODES
from tests.faults.house import POLL_SECONDS, House
from tests.support.processes import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]
PAGES = ("/livez", "/readyz", "/api/v1/nodes", "/api/v1/gpus", "/api/v1/operations", "/sign-in")


def test_without_its_queue_every_page_answers_and_the_poll_resumes_by_itself(house: House) -> None:
    house.kill("valkey")
    for path in PAGES:
        assert house.get(path).status == 200, path
    told = house.get("/healthz")
    assert (told.status, told.body["status"], told.body["queue"]) == (200, "degraded", "away")
    house.start("valkey")  # empty: it keeps nothing
    assert house.wait_for_a_cycle(seconds=15) <= 15
    assert house.get("/healthz").body["queue"] == "ok"


def test_c43_a_queue_that_restarts_twice_leaves_no_deaf_worker(house: House) -> None:
    for _ in range(2):
        house.kill("valkey")
        house.start("valkey")
        time.sleep(1)
    assert house.wait_for_a_cycle(seconds=15) <= 15
    eventually(lambda: house.get("/healthz").body["status"] == "ok", seconds=20)


def test_a_stalled_queue_keeps_nobody_waiting_and_healthz_says_so(house: House) -> None:
    queue = house.running["valkey"]
    queue.send_signal(signal.SIGSTOP)
    try:
        told = [house.get(path) for path in (*PAGES, "/healthz")]
        time.sleep(3 * POLL_SECONDS)
        told += [house.get(path) for path in (*PAGES, "/healthz")]
    finally:
        queue.send_signal(signal.SIGCONT)
    assert {each.status for each in told} == {200}
    assert max(each.seconds for each in told) < 2
    assert told[-1].body["status"] == "degraded"
    assert told[-1].body["queue"] == "away"
    house.wait_for_a_cycle(seconds=20)


def test_who_confirms_a_change_does_not_wait_for_a_stalled_queue(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = type(app)("gpuadmin", broker=house.valkey.url.replace("unix://", "redis+socket://"))
    monkeypatch.setattr(nudge, "app", other)
    nudge.send(uuid4())
    queue = house.running["valkey"]
    queue.send_signal(signal.SIGSTOP)
    try:
        for _ in range(2):
            begun = time.monotonic()
            nudge.send(uuid4())
            assert time.monotonic() - begun < 2
    finally:
        queue.send_signal(signal.SIGCONT)


def test_two_beats_make_one_cycle_an_interval(house: House) -> None:
    house.start("second beat", like="beat")
    time.sleep(3)  # it is up
    begun = time.monotonic()
    time.sleep(4 * POLL_SECONDS)
    assert 3 <= house.agents.asked_since(begun) <= 5


def test_c43_a_worker_that_was_away_does_not_run_what_waited_for_it(house: House) -> None:
    house.kill("worker", signal.SIGKILL)
    time.sleep(4 * POLL_SECONDS)  # beat goes on: messages wait
    begun, since = time.monotonic(), datetime.now(UTC)
    house.start("worker")
    eventually(lambda: house.polled_since(since), seconds=POLL_SECONDS + 15)
    time.sleep(POLL_SECONDS)
    asked = house.agents.asked_since(begun)
    assert asked <= 1 + (time.monotonic() - begun) / POLL_SECONDS, NODES
