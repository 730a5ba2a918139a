"""The first look at a cluster: its version, and who we are in it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from gpuadmin.collect.cluster import introduce
from gpuadmin.fleet.models import Cluster
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.connection import Connection
from tests.operations.world import simulated_api

pytestmark = pytest.mark.django_db


def test_the_account_is_noted_and_a_failure_leaves_it() -> None:
    cluster = Cluster.objects.create(name="lab")
    with tempfile.TemporaryDirectory(prefix="gpa-who-") as folder:
        with simulated_api(Path(folder)) as client:
            introduce(cluster, client)
        cluster.refresh_from_db()
        assert cluster.account == "simulated-administrator"
        assert cluster.simulated
    introduce(cluster, KubeClient(Connection("http://127.0.0.1:9", lambda: None)))
    cluster.refresh_from_db()
    assert cluster.account == "simulated-administrator"
    assert cluster.server == "http://127.0.0.1:9"
