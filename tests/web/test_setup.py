"""Set-up against a simulated API, and against none."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path
from threading import Event

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import AgentState, Cluster, Heartbeat
from gpuadmin.kube.access import Answer, Identity
from gpuadmin.web.needs import needs, our_components
from gpuadmin.web.pictures.setup import component_lines
from gpuadmin.web.views import setup
from tests.operations.world import simulated_api
from tests.support.scripted_api import ScriptedApi
from tests.web.conftest import signed_in
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
    assert page.count('aria-label="unknown"') >= len(needs())
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


def test_only_a_process_that_says_nothing_is_asked_for(
    cluster: Cluster, viewer: Client, now: datetime
) -> None:
    old, why = now - timedelta(minutes=41), "The API server can't be reached."
    Heartbeat.objects.update(ok=False, ok_at=old, at=now, message=why)
    read = text(viewer, "/setup")
    assert "The API server can&#x27;t be reached." in read
    assert "running?" not in read
    Heartbeat.objects.filter(kind="poll").update(at=old)
    assert "Is the worker and beat (Celery) running?" in text(viewer, "/setup")


def test_every_component_stands_with_what_it_gives_and_the_line_that_grants_it() -> None:
    wanted = our_components()
    refused = [Answer(need, need.verb == "get") for one in wanted for need in one.needs]
    lines = component_lines(wanted, refused, Identity("someone"))
    assert [line.name for line in lines] == [one.name for one in wanted]
    assert [line.state.words for line in lines] == ["no", *["off"] * (len(wanted) - 1)]
    assert lines[1].grant == "kubectl apply -k deploy/components/taint"


def test_an_action_whose_component_is_not_held_is_greyed_with_its_name(
    cluster: Cluster,
) -> None:
    Cluster.objects.update(components={"taint": False})
    operator = signed_in(Role.OPERATOR)
    for address in ("/nodes", "/nodes/h100-02"):
        page = operator.get(address).content.decode()
        assert "/nodes/taint" not in page
        assert 'aria-disabled="true"' in page
        assert "does not hold the component “taint”" in page


def test_a_cluster_that_does_not_answer_in_time_is_not_known_yet(
    cluster: Cluster, viewer: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = Event()
    monkeypatch.setattr(setup, "_ask", lambda *_: hangs.wait(20))
    monkeypatch.setattr(setup, "PATIENCE_SECONDS", 0.1)
    settings.KUBECONFIG = "one that nobody has asked yet"
    read = text(viewer, "/setup")
    hangs.set()
    assert "It has not answered yet" in read
    assert "not asked yet" in read


def test_c24_a_node_without_an_agent_stands_with_the_cause_the_text_and_a_line(
    cluster: Cluster, viewer: Client, settings: Settings, tmp_path: Path
) -> None:
    refusal = 'violates PodSecurity "baseline:latest": hostPath volumes (volumes "proc")'
    with ScriptedApi() as api:
        settings.KUBECONFIG = str(api.kubeconfig(tmp_path / "kubeconfig"))
        tolerant = {"tolerations": [{"operator": "Exists"}]}
        api.daemonset = {
            "spec": {"template": {"spec": tolerant}},
            "status": {"desiredNumberScheduled": 12, "currentNumberScheduled": 11},
        }
        api.events = [{"reason": "FailedCreate", "message": refusal}]
        page = unescape(viewer.get("/setup").content.decode())
    cause = "at the level baseline:latest, refuses its pod: hostPath volumes."
    assert re.search(
        rf"t4-01</a>: No agent.*<summary>[^<]*{cause}</summary>{re.escape(refusal)}", page
    )
    assert "kubectl label namespace gpuadmin pod-security" in page


def test_c24_without_the_right_to_read_events_the_line_still_stands(
    cluster: Cluster, viewer: Client, settings: Settings, tmp_path: Path
) -> None:
    with ScriptedApi() as api:
        settings.KUBECONFIG = str(api.kubeconfig(tmp_path / "kubeconfig"))
        api.daemonset = {
            "spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}},
            "status": {"desiredNumberScheduled": 12, "currentNumberScheduled": 11},
        }
        api.events = 403
        page = viewer.get("/setup").content.decode()
    assert "nothing says why" in page
    assert "kubectl describe daemonset gpuadmin-agent -n gpuadmin" in page


def test_an_agent_that_does_not_answer_stands_with_its_reason_and_a_line(
    cluster: Cluster, viewer: Client
) -> None:
    AgentState.objects.filter(node__name="h100-01").update(
        status="unreachable", reason="No answer within 3 s.", pod_name="gpuadmin-agent-x"
    )
    page = viewer.get("/setup").content.decode()
    assert "No answer within 3 s" in page
    assert "kubectl logs gpuadmin-agent-x -n gpuadmin --tail=50" in page
