"""C18: labels of the node → watch → poll → agent → NVML closed, and back again."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.conf import LazySettings, settings
from django.db.models import F

from gpuadmin.fleet.models import AgentState
from tests.agent.door import NODE_NAME
from tests.agent.world import card
from tests.cases.line import BOOT, Line, StartLine
from tests.support.processes import eventually
from tests.support.scripted_api import ScriptedApi, node

pytestmark = pytest.mark.django_db(transaction=True)
STATE, CLIENT = "nvidia.com/mig.config.state", "nvidia.com/gpu.deploy.client"


@pytest.fixture
def windows_of_a_second(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    """The agent comes back after a second; tests/planning has the true times."""
    monkeypatch.setattr("gpuadmin.planning.release.MIN_SECONDS", 1)
    settings.POLL_SECONDS = 0


def label(line: Line, api: ScriptedApi, labels: dict[str, str]) -> None:
    """The node now has these labels, and the watch has seen it."""
    eventually(lambda: api.nodes.watches)
    machine = node(NODE_NAME, gpus=1)
    machine["metadata"]["labels"] = labels
    machine["status"]["nodeInfo"] = {"bootID": BOOT}
    api.send(api.nodes, "MODIFIED", machine)
    eventually(lambda: line.node["labels"] == labels, what="the labels are stored")


def is_open(line: Line) -> bool:
    return line.door.fake.init_count > line.door.fake.shutdown_count


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({STATE: "pending"}, "mig.config.state is pending"),
        ({STATE: "rebooting", CLIENT: "paused-for-mig-change"}, "mig.config.state is rebooting"),
        ({CLIENT: "paused-for-driver-upgrade"}, "gpu.deploy.client is paused-for-driver-upgrade"),
    ],
)
def test_c18_a_signalled_change_closes_nvml_before_the_node_is_read(
    line: StartLine, api: ScriptedApi, labels: dict[str, str], reason: str
) -> None:
    n = line(card(0))
    before = n.gpus[0]["reading"]
    assert is_open(n)
    label(n, api, labels)
    opened = n.door.fake.init_count
    for _ in range(3):
        n.poll("paused")
        assert (n.door.fake.init_count, n.door.fake.shutdown_count) == (opened, opened)
    assert reason in n.node["agent"]["reason"]
    assert n.gpus[0]["reading"] == before
    assert reason in n.page()
    assert not n.finding("agent")


@pytest.mark.usefixtures("windows_of_a_second")
def test_c18_the_agent_stays_away_while_it_is_told_and_comes_back_when_the_signal_clears(
    line: StartLine, api: ScriptedApi
) -> None:
    n = line(card(0))
    label(n, api, {STATE: "pending"})
    for _ in range(3):  # each poll renews it
        n.poll("paused")
        time.sleep(0.6)
    label(n, api, {STATE: "success"})
    time.sleep(1.1)
    n.poll()
    assert is_open(n)
    assert AgentState.objects.get().change_since is None


@pytest.mark.usefixtures("windows_of_a_second")
def test_c18_a_signal_that_never_clears_ends_after_half_an_hour_and_for_good(
    line: StartLine, api: ScriptedApi
) -> None:
    n = line(card(0))
    label(n, api, {CLIENT: "paused-for-mig-change"})
    n.poll("paused")
    limit = timedelta(seconds=settings.RELEASE_LIMIT_SECONDS)
    earlier = F("change_since") - (limit - timedelta(seconds=5))
    AgentState.objects.update(change_since=earlier)
    n.poll("paused")
    AgentState.objects.update(change_since=F("change_since") - timedelta(seconds=5))
    time.sleep(1.1)
    n.poll()
    n.poll()


@pytest.mark.parametrize("labels", [{}, {CLIENT: "true"}, {STATE: "success", CLIENT: "false"}])
def test_c18_without_a_signal_nobody_is_told_to_let_go(
    line: StartLine, api: ScriptedApi, labels: dict[str, str]
) -> None:
    n = line(card(0))
    label(n, api, labels)
    n.poll()
    assert (n.door.fake.init_count, n.door.fake.shutdown_count) == (1, 0)
