"""One real control plane for every test in this folder; see ``tests/controlplane``.

A test of ``cluster`` runs twice: on the simulator with every ``make test``, and on the real control
plane with ``make test-cluster``. What the simulator answers otherwise than the real one fails here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.cluster import SimulatedCluster
from tests.cluster.between import Between
from tests.cluster.console import Console
from tests.cluster.grants import DEPLOY, NAMESPACE, granted, held_names
from tests.cluster.objects import SETTLE_SECONDS
from tests.cluster.simulated import NODES, nodes_on
from tests.conftest import Services
from tests.controlplane import build
from tests.controlplane.client import Client
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until

_START_SECONDS = pytest.StashKey[float]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the binary here, in sight: within a test it would run into the test's time limit."""
    if any(item.get_closest_marker("cluster") for item in session.items):
        capture = session.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            build.binary()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how long the control plane took to start."""
    if seconds := config.stash.get(_START_SECONDS, None):
        terminalreporter.write_line(f"control plane: took pods {seconds:.1f} s after its start")


@pytest.fixture(scope="session")
def plane(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[ControlPlane]:
    """A control plane that takes pods, shared by all tests: leave no node behind."""
    with ControlPlane(tmp_path_factory.mktemp("plane")) as running:
        pytestconfig.stash[_START_SECONDS] = running.start_seconds
        yield running


@pytest.fixture(scope="session")
def reader(plane: ControlPlane) -> Path:
    """The kubeconfig of gpuadmin's own ServiceAccount with ``deploy/base`` alone."""
    plane.kubectl("apply", "-k", str(DEPLOY / "base"))
    user = plane.kubeconfig_for(NAMESPACE, "gpuadmin")
    until(lambda: held_names(user) == {"read"}, SETTLE_SECONDS, "the grants of deploy/base to act")
    return user


@pytest.fixture
def tainter(plane: ControlPlane, reader: Path) -> Iterator[Path]:
    """The same ServiceAccount with the component ``taint`` as well, for one test."""
    with granted(plane, reader, "taint"):
        yield reader


@pytest.fixture(scope="session")
def between(plane: ControlPlane) -> Iterator[Between]:
    """The worker of ``console`` reaches the API server by way of this."""
    with Between(plane.url, plane.run_dir / "pki" / "ca.crt") as running:
        yield running


@pytest.fixture(scope="session")
def console(
    reader: Path, between: Between, services: Services, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Console]:
    """The whole product on the control plane, as ``reader``; with ``tainter`` it may taint."""
    folder = tmp_path_factory.mktemp("console")
    worker = between.kubeconfig(reader, folder / "worker.kubeconfig")
    running = Console(services, folder, reader, worker_kubeconfig=worker)
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(
    scope="module", params=["simulator", pytest.param("real", marks=pytest.mark.cluster)]
)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """An administrator's client of a cluster with the simulated nodes of NODES, without tenants."""
    folder = tmp_path_factory.mktemp("cluster")
    if request.param == "real":
        plane: ControlPlane = request.getfixturevalue("plane")
        with nodes_on(plane, folder, NODES):
            yield plane.admin
        return
    with SimulatedCluster(folder / "run", list(NODES), tenants=False) as simulated:
        simulated.wait_ready()
        yield Client(simulated.kubeconfig)
