"""Objects that can't be read and reads that fail: C36, C38, by the watch process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from gpuadmin.fleet.models import Heartbeat, Node
from gpuadmin.workloads.models import Pod
from tests.support.console import Console
from tests.support.processes import eventually
from tests.support.scripted_api import Json, node, pod
from tests.support.watching import Watch

pytestmark = pytest.mark.django_db(transaction=True)
TEN = [node(f"n{i}") for i in range(10)]


def owned(console: Console) -> int:
    return sum(n["cards"]["owned"] for n in console.all("nodes"))


def error(console: Console, kind: str = "nodes") -> str:
    return str(console.all("clusters")[0][f"{kind}_error"])


def test_c36_nodes_that_a_strict_client_refuses_are_listed(watch: Watch, console: Console) -> None:
    odd = {
        "metadata": {"name": "n1", "uid": "u1"},
        "status": {
            "images": [{"names": None, "sizeBytes": 1}],
            "conditions": [{"type": "CorruptDockerOverlay2", "status": "False"}],
            "capacity": None,
        },
    }
    bare = {"metadata": {"name": "n2", "uid": "u2"}}
    watch([odd, bare])

    found = console.by("nodes")
    assert set(found) == {"n1", "n2"}
    assert [found[name]["ready"] for name in ("n1", "n2")] == [None, None]
    assert [found[name]["resources"]["items"] for name in ("n1", "n2")] == [[], []]
    assert "CorruptDockerOverlay2 False" in console.page("/nodes/n1").text
    assert "The node reports none." in console.page("/nodes/n2").text


def test_c36_one_unreadable_object_is_a_finding_and_the_rest_is_read(
    watch: Watch, console: Console
) -> None:
    bad_node = {"metadata": {"name": "n3", "uid": "u3"}, "spec": {"taints": "all of them"}}
    bad_pod = pod("broken", "n4") | {"spec": {"containers": 7}}
    watch([bad_node, node("n4")], [bad_pod, pod("good", "n4", gpus=2)])

    assert set(console.by("nodes")) == {"n4"}
    assert console.resource("n4")["requested"] == 2
    found = {f["object_name"]: f for f in console.all("findings")}
    assert found["n3"]["code"] == found["team/broken"]["code"] == "unreadable_object"
    assert found["n3"]["sentence"] == "The node n3 can't be read and is left out"
    assert found["n3"]["sentence"] in console.page("/findings").text


@pytest.mark.parametrize(
    "pages",
    [pytest.param([500], id="t2"), pytest.param([[TEN[0]], 500], id="t5")],
)
def test_c38_a_failed_or_partial_list_leaves_the_last_true_numbers_with_their_age(
    watch: Watch, console: Console, pages: list[list[Json] | int]
) -> None:
    api = watch(TEN)
    assert owned(console) == 80
    before = console.all("clusters")[0]["nodes_observed_at"]
    api.nodes.pages = pages
    api.relist(api.nodes)
    eventually(lambda: error(console))

    assert owned(console) == 80
    assert console.all("clusters")[0]["nodes_observed_at"] == before
    overview = console.page("/")
    assert "Owned 80" in overview.text
    assert "These numbers are not current." in overview.text
    assert error(console) in overview.text
    earlier = timezone.now() - timedelta(minutes=9, seconds=1)
    Heartbeat.objects.filter(kind="watch-nodes").update(ok_at=earlier)
    assert "9 m ago" in console.page("/").text


def test_c38_a_list_that_answers_again_ends_the_banner(watch: Watch, console: Console) -> None:
    api = watch(TEN)
    api.nodes.pages = [500]
    api.relist(api.nodes)
    said = eventually(lambda: error(console))
    assert said in console.page("/").text
    api.nodes.pages = [TEN[:9]]
    eventually(lambda: owned(console) == 72)
    assert not error(console)
    assert said not in console.page("/").text


def test_c38_an_empty_list_is_a_true_zero_at_once(watch: Watch, console: Console) -> None:
    api = watch(TEN, [pod(f"p{i}", f"n{i}", gpus=4) for i in range(7)])
    assert "Owned 80" in console.page("/").text
    assert "Allocated 28" in console.page("/").text
    api.nodes.pages = [[]]
    api.relist(api.nodes)
    eventually(lambda: not console.all("nodes"))
    overview = console.page("/").text
    assert "This cluster has no GPU nodes" in overview
    assert "28" not in overview  # never "0 in all, 28 in use"


def test_c38_without_the_right_to_list_pods_capacity_stands_and_the_rest_is_unknown(
    watch: Watch, console: Console
) -> None:
    watch([node("n1")], 403)
    eventually(lambda: error(console, "pods"))

    row = console.resource("n1")
    assert (row["capacity"], row["allocatable"]) == (8, 8)
    assert (row["requested"], row["free"], row["over_committed"]) == (None, None, None)
    cards = console.one("nodes", "n1")["cards"]
    assert (cards["owned"], cards["allocated"], cards["free"]) == (8, None, 0)
    assert cards["unknown"] == 8
    overview = console.page("/").text
    assert "We may not list pods" in overview
    assert "Allocated –" in overview
    for address in ("/nodes", "/nodes/n1"):
        assert "– (pods may not be listed)" in console.page(address).text


@pytest.mark.parametrize("address", ["/", "/nodes"])
def test_c38_numbers_on_one_page_come_from_one_snapshot(
    watch: Watch, console: Console, address: str
) -> None:
    watch([node("n1")], [pod("p", "n1", gpus=5)])
    with everything_goes_before_pods_are_read():
        words = console.page(address).text
    assert ("Owned 8" in words) if address == "/" else ("n1" in words)
    assert "5" in words
    assert "5" not in console.page(address).text.split("clust")[0]


@contextmanager
def everything_goes_before_pods_are_read() -> Iterator[None]:
    """In the middle of a page, between its queries, another process removes nodes and pods."""
    gone: list[bool] = []

    def remove() -> None:
        with transaction.atomic():
            Node.objects.update(gone_at=timezone.now())
            Pod.objects.update(gone_at=timezone.now())
        connection.close()

    def wrapper(execute: Any, sql: str, *arguments: Any) -> Any:
        if 'FROM "workloads_pod"' in sql and not gone:
            gone.append(True)
            thread = threading.Thread(target=remove)
            thread.start()
            thread.join()
        return execute(sql, *arguments)

    with connection.execute_wrapper(wrapper):
        yield
    assert gone
