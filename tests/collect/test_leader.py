"""One watcher leads; a sleeper past its lease writes nothing; the next one follows."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.db import transaction
from django.utils import timezone

from gpuadmin.collect.leader import LEASE_SECONDS, Leader, LostLeadershipError
from gpuadmin.fleet.models import Cluster
from gpuadmin.fleet.services import ensure_cluster
from tests.support.processes import eventually, manage
from tests.support.scripted_api import ScriptedApi, node

NOW = timezone.now()


@pytest.mark.django_db
def test_a_second_watcher_leads_only_after_the_first_ones_lease() -> None:
    cluster = ensure_cluster("c")
    first, second = Leader(cluster.pk), Leader(cluster.pk)
    assert first.claim(NOW)
    assert not second.claim(NOW + timedelta(seconds=LEASE_SECONDS - 1))
    assert first.claim(NOW + timedelta(seconds=LEASE_SECONDS - 1))
    late = NOW + timedelta(seconds=3 * LEASE_SECONDS)
    assert second.claim(late)
    assert not first.claim(late)
    assert (second.term or 0) > 1


@pytest.mark.django_db
def test_a_watcher_that_slept_past_its_lease_may_not_write() -> None:
    cluster = ensure_cluster("c")
    sleeper, successor = Leader(cluster.pk), Leader(cluster.pk)
    sleeper.claim(NOW)
    successor.claim(NOW + timedelta(seconds=2 * LEASE_SECONDS))
    with transaction.atomic():
        assert successor.check().pk == cluster.pk
        with pytest.raises(LostLeadershipError):
            sleeper.check()


@pytest.mark.django_db(transaction=True)
def test_when_the_leader_stops_the_waiting_watcher_follows(
    process_environ: dict[str, str], tmp_path: Path
) -> None:
    def leader() -> str:
        return Cluster.objects.values_list("leader", flat=True).first() or ""

    with ScriptedApi() as api:
        api.nodes.pages = [[node("n1")]]
        config = api.kubeconfig(tmp_path / "kubeconfig")
        environ = {**process_environ, "GPUADMIN_KUBECONFIG": str(config)}
        with manage("watch", environ=environ, log=tmp_path / "second.log") as waiting:
            first = eventually(leader)
            eventually(lambda: Cluster.objects.get().nodes.count() == 1)
            with manage("watch", environ=environ, log=tmp_path / "first.log") as follower:
                api.nodes.pages = [[node("n1"), node("n2")]]  # which only a new list tells
                waiting.terminate()
                waiting.wait(10)
                next_one = eventually(lambda: leader() if leader() != first else "")
                assert f"/{follower.pid}/" in next_one
                eventually(lambda: Cluster.objects.get().nodes.count() == 2)
