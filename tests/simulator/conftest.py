"""One API server without nodes for each module, and one whole fleet for the session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simulator.cluster import SimulatedCluster
from tests.simulator.support import Api

SECRET = "a secret of the simulator's tests"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedCluster]:
    """Only the API server and its controllers."""
    with SimulatedCluster(tmp_path_factory.mktemp("bare") / "sim", nodes=[]) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def api(bare: SimulatedCluster) -> Api:
    return Api(bare.kubeconfig)


@pytest.fixture
def namespace(api: Api) -> str:
    """A fresh namespace."""
    made = api.create("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})
    return str(made["metadata"]["name"])


@pytest.fixture(scope="session", autouse=True)
def _secret() -> Iterator[None]:
    """The agents' secret, known to the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUADMIN_AGENT_SECRET", SECRET)
        yield


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedCluster]:
    """Two nodes of the fleet without tenants."""
    folder = tmp_path_factory.mktemp("two") / "sim"
    with SimulatedCluster(folder, nodes=["h100-02", "l40s-02"], tenants=False) as cluster:
        cluster.wait_ready()
        yield cluster


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedCluster]:
    """The demo's whole world, to look at and not to change."""
    with SimulatedCluster(tmp_path_factory.mktemp("fleet") / "sim") as cluster:
        cluster.wait_ready()
        yield cluster
