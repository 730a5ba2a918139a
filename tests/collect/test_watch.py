"""The watch process on an API that misbehaves: C36, C38 and the first of C37."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from gpuadmin.fleet.models import Cluster, Finding
from gpuadmin.workloads.facts import NodeRecord
from gpuadmin.workloads.queries import Totals, gpu_records, totals
from tests.support.processes import eventually, manage
from tests.support.scripted_api import ScriptedApi, node, pod

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    with ScriptedApi() as api:
        yield api


@pytest.fixture
def watch(
    api: ScriptedApi, process_environ: dict[str, str], tmp_path: Path
) -> Iterator[ScriptedApi]:
    """The API with the real watch process on it, after its first two lists."""
    config = api.kubeconfig(tmp_path / "kubeconfig")
    environ = {**process_environ, "GPUADMIN_KUBECONFIG": str(config)}
    with manage("watch", environ=environ, log=tmp_path / "watch.log"):
        yield api


def cluster() -> Cluster | None:
    return Cluster.objects.first()


def observed() -> Cluster | None:
    found = cluster()
    return found if found and found.nodes_observed_at and found.pods_observed_at else None


def records() -> list[NodeRecord]:
    found = cluster()
    return gpu_records(found, timezone.now()) if found else []


def counted() -> Totals:
    return totals(records())


def owned(number: int) -> bool:
    return observed() is not None and counted().owned == number


def test_c36_nodes_that_a_strict_client_refuses_are_listed(watch: ScriptedApi) -> None:
    odd = {
        "metadata": {"name": "n1", "uid": "u1"},
        "status": {
            "images": [{"names": None, "sizeBytes": 1}],
            "conditions": [{"type": "CorruptDockerOverlay2", "status": "False"}],
            "capacity": None,
        },
    }
    bare = {"metadata": {"name": "n2", "uid": "u2"}}
    unreadable = {"metadata": {"name": "n3", "uid": "u3"}, "spec": {"taints": "all of them"}}
    watch.nodes.pages = [[odd, bare, unreadable, node("n4")]]
    watch.relist(watch.nodes)
    found = eventually(lambda: {n.name: n for n in _present()} if len(_present()) == 3 else {})
    assert set(found) == {"n1", "n2", "n4"}
    assert [c["type"] for c in found["n1"].conditions] == ["CorruptDockerOverlay2"]
    assert found["n2"].conditions == []
    assert found["n2"].ready is None
    finding = Finding.objects.get(code="unreadable_object", resolved_at=None)
    assert "n3" in finding.sentence


def _present() -> list[Any]:
    found = cluster()
    return list(found.nodes.filter(gone_at=None)) if found else []


def test_c38_a_failed_list_leaves_the_last_true_numbers_with_their_age(watch: ScriptedApi) -> None:
    watch.nodes.pages = [[node(f"n{i}") for i in range(10)]]
    watch.relist(watch.nodes)
    eventually(lambda: owned(80))
    before = cluster()
    assert before is not None
    for failure in ([500], [[node("n0")], 500]):  # t2, and t5: page 1 is good, page 2 is not
        watch.nodes.pages = failure
        watch.relist(watch.nodes)
        found = eventually(lambda: (c := cluster()) is not None and c.nodes_error != "" and c)
        assert isinstance(found, Cluster)
        assert counted().owned == 80
        assert found.nodes_observed_at == before.nodes_observed_at
        watch.nodes.pages = [[node(f"n{i}") for i in range(10)]]
        eventually(lambda: (c := cluster()) is not None and c.nodes_error == "")
        before = cluster()
        assert before is not None


def test_c38_an_empty_list_is_a_true_zero(watch: ScriptedApi) -> None:
    watch.nodes.pages = [[node("n1")]]
    watch.relist(watch.nodes)
    eventually(lambda: owned(8))
    watch.nodes.pages = [[]]
    watch.relist(watch.nodes)
    eventually(lambda: owned(0))


def test_c38_without_the_right_to_list_pods_capacity_stands_and_the_rest_is_unknown(
    watch: ScriptedApi,
) -> None:
    watch.nodes.pages = [[node("n1")]]
    watch.pods.pages = [403]
    watch.relist(watch.nodes)
    watch.relist(watch.pods)
    eventually(lambda: (c := cluster()) is not None and c.pods_forbidden)
    eventually(lambda: len(records()) == 1)
    row = records()[0].account.rows[0]
    assert (row.capacity, row.allocatable) == (8, 8)
    assert (row.requested, row.free, row.over_committed) == (None, None, None)
    assert counted().allocated is None


def test_a_pod_that_comes_and_goes_changes_the_counts(watch: ScriptedApi) -> None:
    watch.nodes.pages = [[node("n1")]]
    watch.relist(watch.nodes)
    eventually(lambda: owned(8))
    eventually(lambda: bool(watch.pods.watches))
    watch.send(watch.pods, "ADDED", pod("p1", "n1", gpus=3))
    eventually(lambda: counted().allocated == 3)
    watch.send(watch.pods, "DELETED", pod("p1", "n1", gpus=3))
    eventually(lambda: counted().allocated == 0)


def test_c37_a_watch_that_always_answers_410_is_no_busy_loop(watch: ScriptedApi) -> None:
    eventually(lambda: observed() is not None)
    watch.nodes.watch_status = 410
    watch.relist(watch.nodes)
    before = watch.nodes.lists
    time.sleep(5)
    assert watch.nodes.lists - before <= 6


def test_a_node_that_returns_under_its_name_is_a_new_node(watch: ScriptedApi) -> None:
    watch.nodes.pages = [[node("n1")]]
    watch.relist(watch.nodes)
    eventually(lambda: owned(8))
    eventually(lambda: bool(watch.nodes.watches))
    again = node("n1", gpus=4)
    again["metadata"]["uid"] = "another"
    watch.send(watch.nodes, "ADDED", again)
    eventually(lambda: owned(4))
    assert [n.uid for n in _present()] == ["another"]
