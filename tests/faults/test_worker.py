"""A worker is killed while it reads the agents (fault 1)."""

from __future__ import annotations

import time

import pytest

from tests.faults.agents import NODES
from tests.faults.house import POLL_SECONDS, House
from tests.support.processes import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]


def test_a_worker_killed_in_a_cycle_leaves_whole_nodes_and_the_next_cycle_is_on_time(
    house: House,
) -> None:
    slow = NODES[1:]
    house.agents.delays = dict.fromkeys(slow, 2.0)
    begun = time.monotonic()
    eventually(lambda: all(house.agents.asked_since(begun, name) for name in NODES), seconds=15)
    time.sleep(1)  # the quick one is stored, the slow ones are awaited
    house.kill("worker")
    house.agents.delays = {}
    house.start("worker")
    assert house.wait_for_a_cycle(seconds=POLL_SECONDS + 5 + 10) <= POLL_SECONDS + 5 + 5
    cycles = house.sql(
        "SELECT r.at, g.node_id, count(*) FROM ledger_reading r"
        " JOIN fleet_gpu g ON g.id = r.gpu_id GROUP BY 1, 2"
    )
    assert cycles
    assert {count for *_, count in cycles} == {"8"}, "a node is stored whole or not at all"
