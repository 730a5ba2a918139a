"""The whole line without a browser: NVML → agent → poll → PostgreSQL, kubelet → API → watch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from gpuadmin.collect.tasks import poll
from gpuadmin.fleet.models import AgentState, Cluster, Gpu, Heartbeat
from gpuadmin.fleet.queries import open_findings
from gpuadmin.workloads.queries import Overview, overview
from simulator.cluster import SimulatedCluster
from tests.conftest import AGENT_SECRET
from tests.support.processes import eventually, manage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SimulatedCluster]:
    monkeypatch.setenv("GPUADMIN_AGENT_SECRET", AGENT_SECRET)
    with SimulatedCluster(tmp_path / "sim") as cluster:
        cluster.wait_ready()
        yield cluster


def seen() -> Overview:
    return overview(Cluster.objects.get(), timezone.now())


def test_the_fleet_of_the_demo_is_read_whole(
    simulated: SimulatedCluster,
    process_environ: dict[str, str],
    tmp_path: Path,
    settings: Settings,
) -> None:
    settings.RELEASE_LIMIT_SECONDS = 0  # a100-02's stuck change is older than any limit
    environ = {**process_environ, "GPUADMIN_KUBECONFIG": str(simulated.kubeconfig)}
    with manage("watch", environ=environ, log=tmp_path / "watch.log"):
        eventually(lambda: AgentState.objects.filter(address__isnull=False).count() == 11)
        poll(at_once=True)
    found = seen()
    assert found.cluster.simulated
    assert (found.totals.nodes, found.reporting) == (12, 11)
    assert found.totals.owned == 73
    assert found.totals.not_observed == 4
    assert Counter(found.totals.uses).total() == 73
    assert Gpu.objects.filter(state="lost").count() == 1
    assert {beat.kind for beat in Heartbeat.objects.filter(ok=True)} == {
        "watch-nodes",
        "watch-pods",
        "poll",
    }
    codes = {finding.code for finding in open_findings(found.cluster)}
    assert {"card_lost", "agent", "pods_pending"} <= codes
