"""Set-up against a simulated API, and against none."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from gpuadmin.fleet.models import Cluster, Heartbeat
from gpuadmin.kube.access import Need, Remembered, grant_command, review
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.connection import Connection
from tests.operations.world import simulated_api
from tests.web.test_pages import text


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="gpa-web-") as folder, simulated_api(Path(folder)):
        yield str(Path(folder) / "kubeconfig")


def test_each_permission_is_answered_by_the_api_server(
    cluster: Cluster, viewer: Client, kubeconfig: str, settings: Settings
) -> None:
    settings.KUBECONFIG = kubeconfig
    read = text(viewer, "/setup")
    assert "We are simulated-administrator" in read
    assert "everything that we need" in read
    assert "Agents 11 of 12 report" in read
    assert "The DaemonSet&#x27;s node selector does not match this node" in read


def test_a_cluster_that_cannot_be_reached_is_unknown_not_no_and_the_page_comes_anyway(
    cluster: Cluster, viewer: Client, settings: Settings, tmp_path: Path
) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: c,"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}],"
        " contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}"
    )
    settings.KUBECONFIG = str(config)
    began = time.monotonic()
    page = viewer.get("/setup").content.decode()
    assert time.monotonic() - began < 8
    assert "can&#x27;t be reached" in page
    assert page.count('aria-label="unknown"') >= 9
    assert 'aria-label="no"' not in page


def test_a_kubeconfig_that_is_not_there_is_one_sentence(
    cluster: Cluster, viewer: Client, settings: Settings
) -> None:
    settings.KUBECONFIG = "/nowhere/kubeconfig"
    assert "There is no kubeconfig at /nowhere/kubeconfig" in text(viewer, "/setup")


def test_a_process_that_stopped_is_named_with_what_to_start(
    cluster: Cluster, viewer: Client
) -> None:
    Heartbeat.objects.filter(kind="poll").delete()
    assert re.search(r"Reading the agents.*Never ran. Start the worker", text(viewer, "/setup"))


def test_the_line_that_grants_names_the_account_as_kubectl_wants_it() -> None:
    need = Need("list", "daemonsets", "", "apps", "gpuadmin")
    account = "system:serviceaccount:gpuadmin:web"
    assert grant_command(["get", "list"], need, account) == (
        "kubectl create role gpuadmin-daemonsets-read -n gpuadmin --verb=get,list"
        " --resource=daemonsets.apps && kubectl create rolebinding gpuadmin-daemonsets-read"
        " -n gpuadmin --role=gpuadmin-daemonsets-read --serviceaccount=gpuadmin:web"
    )
    whole = grant_command(["patch"], Need("patch", "nodes", ""), "anna")
    assert whole.endswith("--clusterrole=gpuadmin-nodes-patch --user=anna")


def test_no_answer_is_none_never_false() -> None:
    client = KubeClient(Connection("http://127.0.0.1:9", lambda: None), timeout_seconds=1)
    [answer] = review(client, [Need("get", "nodes", "")])
    assert answer.allowed is None
    assert "can't be reached" in answer.reason


def test_what_is_remembered_is_asked_again_only_after_its_time() -> None:
    clock, answers = [0.0], iter([1, 2, 3])
    remembered = Remembered(lambda: next(answers), 10, lambda: clock[0])
    assert (remembered(), remembered()) == (1, 1)
    clock[0] = 10.1
    assert remembered() == 2
