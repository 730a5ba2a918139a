"""Who may ask: the token of the hour (design.md section 9, C45)."""

from __future__ import annotations

import time

import pytest

from agent.contract.token import make_token
from tests.agent.conftest import OpenDoor
from tests.agent.door import NODE_NAME, POD_UID, SECRET, Door, good_token
from tests.agent.world import card

HOUR = 3600.0
NOON = 500_000 * HOUR


def token_at(seconds: float) -> str:
    """A genuine token of another hour."""
    return make_token(SECRET, POD_UID, NODE_NAME, seconds)


def status(door: Door, token: str) -> int:
    return door.ask("GET", "/v1/report", token=token)[0]


def test_a_genuine_token_is_admitted(open_door: OpenDoor) -> None:
    assert status(open_door(card(0)), good_token()) == 200


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "500000",
        "500000.",
        f"500000.{'0' * 64}",
        make_token(b"another secret of that length", POD_UID, NODE_NAME, NOON),
        make_token(SECRET, "another pod", NODE_NAME, NOON),
        make_token(SECRET, POD_UID, "another-node", NOON),
        "500001." + token_at(NOON).partition(".")[2],  # another hour's MAC
        token_at(NOON) + "0",
        token_at(NOON).upper(),
        " 500000." + token_at(NOON).partition(".")[2].replace("a", "b"),
        "\xb2." + "\xff" * 64,
        "9" * 5000 + ".x",
    ],
)
def test_a_forged_token_is_refused_and_opens_nothing(open_door: OpenDoor, token: str) -> None:
    door = open_door(card(0))

    code, answer = door.ask("GET", "/v1/report", token=token)

    assert code == 401
    assert "token" in answer["error"]
    assert door.fake.init_count == 0


def test_a_forged_token_releases_nothing(open_door: OpenDoor) -> None:
    door = open_door(card(0))
    door.report()

    code, _ = door.ask("POST", "/v1/release", b'{"seconds":600,"reason":"x"}', token="1.x")

    assert code == 401
    assert door.report().state == "ok"


def test_c45_the_nodes_clock_plays_no_part(open_door: OpenDoor) -> None:
    door = open_door(card(0))

    assert status(door, token_at(time.time() - 5000 * HOUR)) == 200
    assert status(door, token_at(time.time() + 5000 * HOUR)) == 200


def test_c45_an_hour_older_than_the_newest_minus_one_is_refused(open_door: OpenDoor) -> None:
    door = open_door(card(0))

    assert status(door, token_at(NOON)) == 200
    assert status(door, token_at(NOON - HOUR)) == 200  # made just before the hour struck
    assert status(door, token_at(NOON - 2 * HOUR)) == 401
    assert status(door, token_at(NOON)) == 200


def test_a_forged_hour_does_not_move_the_newest(open_door: OpenDoor) -> None:
    door = open_door(card(0))
    assert status(door, token_at(NOON)) == 200

    assert status(door, f"999999.{'0' * 64}") == 401

    assert status(door, token_at(NOON)) == 200
