"""One house for all of it: each test puts back what it took away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.house import House


@pytest.fixture(scope="session")
def built() -> Iterator[House]:
    with House() as house:
        yield house


@pytest.fixture
def house(built: House) -> Iterator[House]:
    """The house, whole again before and after: every process runs and a cycle went through."""
    yield built
    built.agents.delays.clear()
    for name in list(built.running):
        if name not in built.commands:
            built.kill(name)
    for name in built.commands:
        if name not in built.running:
            built.start(name)
    built.wait_for_a_cycle(seconds=60)
