"""PostgreSQL restarts under load: politely, and as after a crash (fault 6)."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from tests.faults.house import House, Told

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]
LOAD = ("/api/v1/nodes", "/api/v1/gpus", "/sign-in", "/api/v1/operations")
AWAY_SECONDS = 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT], ids=["fast", "immediate"])
def test_a_restart_of_the_database_is_a_503_and_everybody_comes_back(
    house: House, number: signal.Signals
) -> None:
    before = {name: process.pid for name, process in house.running.items()}
    told: list[Told] = []
    over = threading.Event()

    def load(path: str) -> None:
        while not over.is_set():
            told.append(house.get(path))

    threads = [threading.Thread(target=load, args=(path,)) for path in LOAD]
    for thread in threads:
        thread.start()
    time.sleep(1)
    house.kill("postgres", number)
    time.sleep(AWAY_SECONDS)
    house.start("postgres")
    back = time.monotonic()
    while house.get("/api/v1/nodes").status != 200:
        assert time.monotonic() - back < 10
        time.sleep(0.1)
    took = house.wait_for_a_cycle(seconds=30)
    over.set()
    for thread in threads:
        thread.join()
    assert time.monotonic() - back < 10 + took
    assert {each.status for each in told} <= {200, 503}
    refused = [each for each in told if each.status == 503]
    assert refused
    assert all(each.headers["Retry-After"] == "5" for each in refused)
    assert not any("Traceback" in str(each.body) for each in told)
    assert house.get("/readyz").status == 200
    now = {name: process.pid for name, process in house.running.items() if process.poll() is None}
    assert {**before, "postgres": 0} == {**now, "postgres": 0}, "nobody had to be started anew"
