"""Heartbeats and findings: what never worked is late, shards count, two writers don't collide."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from gpuadmin.collect.poll import end_shard, forget_shards
from gpuadmin.fleet.models import Cluster, Finding, Heartbeat
from gpuadmin.fleet.queries import freshness
from gpuadmin.fleet.services import (
    FindingFact,
    beat,
    ensure_cluster,
    sync_findings,
    take_poll_turn,
)

NOW = timezone.now()


def late(cluster: Cluster) -> dict[str, bool]:
    return {each.kind: each.late for each in freshness(cluster, timezone.now())}


def old_cluster() -> Cluster:
    cluster = ensure_cluster("c")
    Cluster.objects.update(created_at=NOW - timedelta(hours=1))
    cluster.refresh_from_db()
    return cluster


@pytest.mark.django_db
def test_a_cycle_that_never_worked_is_late_and_healthz_says_degraded(client: Client) -> None:
    cluster = old_cluster()
    for kind in ("watch-nodes", "watch-pods"):
        beat(cluster, kind, timezone.now(), expected_seconds=75)
    assert late(cluster) == {"watch-nodes": False, "watch-pods": False, "poll": True}
    told = client.get("/healthz").json()
    assert told["status"] == "degraded"
    assert told["clusters"]["c"]["poll"] == {"age_seconds": None, "late": True, "ok": False}


@pytest.mark.django_db
def test_a_new_cluster_is_given_a_minute_for_its_first_cycles() -> None:
    assert not any(late(ensure_cluster("new")).values())


@pytest.mark.django_db
def test_a_poll_is_as_fresh_as_its_worst_shard() -> None:
    cluster = old_cluster()
    for number in range(3):
        end_shard(cluster, number, Counter(ok=1))
    assert not late(cluster)["poll"]
    Heartbeat.objects.filter(kind="poll-2").update(ok_at=NOW - timedelta(hours=1))
    assert late(cluster)["poll"]
    forget_shards(cluster, 2)
    assert not late(cluster)["poll"]


@pytest.mark.django_db(transaction=True)
def test_the_poll_and_the_watcher_may_open_the_same_finding_at_once() -> None:
    cluster = ensure_cluster("c")
    fact = FindingFact("agent", "warning", "node", "u1", "n1", "n1 has no agent")
    start = threading.Barrier(4)
    failed: list[BaseException] = []

    def open_it() -> None:
        try:
            start.wait()
            sync_findings(cluster, ["agent"], [fact], timezone.now())
        except BaseException as error:
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert Finding.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_beats_and_a_burst_of_messages_make_one_cycle_an_interval() -> None:
    cluster = ensure_cluster("c")
    start = threading.Barrier(4)
    turns: list[bool] = []

    def try_it() -> None:
        try:
            start.wait()
            turns.append(take_poll_turn(cluster, NOW, 15))
        finally:
            connection.close()

    threads = [threading.Thread(target=try_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(turns) == [False, False, False, True]
    assert not take_poll_turn(cluster, NOW + timedelta(seconds=11), 15)
    assert take_poll_turn(cluster, NOW + timedelta(seconds=14), 15), "a beat is never on the dot"


@pytest.mark.django_db
def test_a_clock_that_was_set_back_does_not_stop_the_poll() -> None:
    cluster = ensure_cluster("c")
    assert take_poll_turn(cluster, NOW + timedelta(hours=1), 15)
    assert take_poll_turn(cluster, NOW, 15)
    assert not take_poll_turn(cluster, NOW + timedelta(seconds=1), 15)
