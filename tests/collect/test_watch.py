"""The watch process as the cluster moves, and the first of C37. C36 and C38 are in tests/cases."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gpuadmin.fleet.models import AgentState
from tests.support.console import Console
from tests.support.processes import eventually
from tests.support.scripted_api import node, pod
from tests.support.watching import Watch

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_pod_that_comes_and_goes_changes_the_counts(watch: Watch, console: Console) -> None:
    api = watch([node("n1")])
    eventually(lambda: api.pods.watches)
    api.send(api.pods, "ADDED", pod("p1", "n1", gpus=3))
    eventually(lambda: console.one("nodes", "n1")["cards"]["allocated"] == 3)
    api.send(api.pods, "DELETED", pod("p1", "n1", gpus=3))
    eventually(lambda: console.one("nodes", "n1")["cards"]["allocated"] == 0)


def test_c37_a_watch_that_always_answers_410_is_no_busy_loop(watch: Watch) -> None:
    api = watch()
    api.nodes.watch_status = 410
    api.relist(api.nodes)
    before = api.nodes.lists
    time.sleep(5)
    assert api.nodes.lists - before <= 6


def test_a_node_that_returns_under_its_name_is_a_new_node(watch: Watch, console: Console) -> None:
    api = watch([node("n1")])
    eventually(lambda: api.nodes.watches)
    again = node("n1", gpus=4)
    again["metadata"]["uid"] = "another"
    api.send(api.nodes, "ADDED", again)
    eventually(lambda: console.by("nodes", "uid").keys() == {"another"})
    assert console.one("nodes", "n1")["cards"]["owned"] == 4


def test_agents_that_are_installed_after_the_first_list_are_known_at_once(
    watch: Watch, console: Console
) -> None:
    api = watch([node("n1")])
    eventually(lambda: api.pods.watches)
    assert console.one("nodes", "n1")["agent"]["status"] == "missing"
    api.daemonset = {"metadata": {"name": "gpuadmin-agent", "uid": "ours"}}
    for owner, name in (("another", "stranger"), ("ours", "agent")):
        api.send(api.pods, "ADDED", _of_daemonset(owner, name))
    reason = "It has not been asked yet."
    eventually(lambda: console.one("nodes", "n1")["agent"]["reason"] == reason)
    assert AgentState.objects.get().pod_uid == "uid-agent"


def _of_daemonset(uid: str, name: str) -> dict[str, Any]:
    found = pod(name, "n1", podIP="127.0.0.9")
    owner = {"kind": "DaemonSet", "name": "gpuadmin-agent", "uid": uid, "controller": True}
    found["metadata"] |= {"namespace": "gpuadmin", "ownerReferences": [owner]}
    found["spec"]["containers"][0] |= {"ports": [{"name": "agent", "containerPort": 9477}]}
    return found
