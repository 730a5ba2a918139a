"""The first look at a cluster: its version, and who we are in it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from gpuadmin.collect import tasks
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


def test_the_components_that_we_hold_are_noted_for_the_pages(settings: Settings) -> None:
    cluster = Cluster.objects.create(name="default")
    with tempfile.TemporaryDirectory(prefix="gpa-who-") as folder, simulated_api(Path(folder)):
        settings.KUBECONFIG = str(Path(folder) / "kubeconfig")
        tasks.rights()
    cluster.refresh_from_db()
    assert cluster.components["taint"] is True
    assert cluster.components_at is not None


def test_while_the_api_server_can_not_be_asked_what_was_known_of_our_rights_stays(
    settings: Settings,
) -> None:
    settings.KUBECONFIG = "/nowhere/kubeconfig"
    cluster = Cluster.objects.create(name="default", components={"taint": True})
    tasks.rights()
    cluster.refresh_from_db()
    assert cluster.components == {"taint": True}
