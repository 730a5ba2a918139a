"""Agents for the tests, each of which has to let go of NVML as often as it opened it (C18)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator.hardware import Card
from tests.agent.door import Door, our_threads, wait_until
from tests.agent.world import node

OpenDoor = Callable[..., Door]


@pytest.fixture
def open_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenDoor]:
    """``open_door(*cards, **settings)``: an agent of a node with these cards."""
    monkeypatch.setattr("agent.xids.WAIT_MILLISECONDS", 50)  # else each stop takes half a second
    doors: list[Door] = []

    def open_(*cards: Card, **settings: Any) -> Door:
        doors.append(Door(tmp_path, node(*cards), **settings))
        return doors[-1]

    yield open_
    for door in doors:
        door.close()
        assert door.fake.init_count == door.fake.shutdown_count
    wait_until(lambda: not our_threads())
