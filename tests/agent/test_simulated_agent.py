"""Faults of a simulated agent: silent, lying, endless. The real agent knows none of them."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from agent.contract.report import TOKEN_HEADER, decode_report
from simulator.nvml.agent import lying_handler
from simulator.nvml.world import World
from tests.agent.conftest import OpenDoor
from tests.agent.door import Door, good_token
from tests.agent.world import card


@pytest.fixture
def door(open_door: OpenDoor, tmp_path: Path) -> Door:
    return open_door(card(0), handler=lying_handler(World(tmp_path / "hardware.json")))


@contextmanager
def asked(door: Door, seconds: float = 5) -> Iterator[http.client.HTTPResponse]:
    """The answer to a report request, on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=seconds)
    try:
        connection.request("GET", "/v1/report", headers={TOKEN_HEADER: good_token()})
        with connection.getresponse() as answer:
            yield answer
    finally:
        connection.close()


def test_without_a_lie_it_is_the_real_agent(door: Door) -> None:
    assert door.report().gpus[0].state == "ok"


def test_a_silent_agent_takes_the_request_and_never_answers(door: Door) -> None:
    door.write(lie={"silent": ""})

    with pytest.raises(TimeoutError), asked(door, seconds=0.5):
        pass


def test_a_lying_agent_speaks_for_another_node(door: Door) -> None:
    door.write(lie={"as_node": "h100-02"})

    assert door.report().node_name == "h100-02"


def test_garbage_is_no_report(door: Door) -> None:
    door.write(lie={"garbage": ""})

    with asked(door) as answer:
        body = answer.read()

    assert answer.status == 200
    with pytest.raises(msgspec.DecodeError):
        decode_report(body)


def test_an_endless_answer_goes_on_until_the_reader_hangs_up(door: Door) -> None:
    door.write(lie={"huge": ""})

    with asked(door) as answer:
        assert len(answer.read(8 * 2**20)) == 8 * 2**20


def test_a_lie_ends_when_it_is_taken_back(door: Door) -> None:
    door.write(lie={"as_node": "h100-02"})
    door.write(lie={})

    assert door.report().node_name == "h100-01"
