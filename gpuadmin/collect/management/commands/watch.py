"""``manage.py watch``: follow the cluster's nodes and pods until stopped."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from gpuadmin import env
from gpuadmin.collect.batches import KINDS, WATCH_EXPECTED_SECONDS, Batch
from gpuadmin.collect.cluster import daemonset_finder, introduce
from gpuadmin.collect.leader import RENEW_SECONDS, Leader
from gpuadmin.collect.watcher import Watcher
from gpuadmin.fleet.models import Cluster
from gpuadmin.fleet.services import beat, ensure_cluster
from gpuadmin.fleet.sources import source_of
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.errors import BadConfig


class Command(BaseCommand):
    help = "Follow the cluster's nodes and pods. One watcher leads; further ones wait for it."

    def handle(self, *args: Any, **options: Any) -> None:
        env.refuse_to_serve()
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: stop.set())
        while not stop.is_set():
            try:
                cluster = ensure_cluster(settings.CLUSTER_NAME)
                self._follow(cluster, stop)
            except DatabaseError as error:
                self.stderr.write(f"The database can't be used: {error}".splitlines()[0])
            close_old_connections()
            stop.wait(2.0)

    def _follow(self, cluster: Cluster, stop: threading.Event) -> None:
        try:
            source_of(cluster).connect()
        except BadConfig as error:
            self._note(cluster, error.sentence)
            stop.wait(10.0)
            return
        leader = Leader(cluster.pk)
        while not stop.is_set() and not leader.claim(timezone.now()):
            stop.wait(RENEW_SECONDS)
        if stop.is_set():
            return
        client = KubeClient(source_of(cluster).connect())  # it may have changed while we waited
        introduce(cluster, client)
        batch = Batch(daemonset_finder(client))
        try:
            Watcher(cluster, client, leader, batch, stop).run()
        finally:
            leader.resign()

    def _note(self, cluster: Cluster, sentence: str) -> None:
        """A kubeconfig that can't be used is said on the pages, not only here."""
        self.stderr.write(sentence)
        now = timezone.now()
        Cluster.objects.filter(pk=cluster.pk).update(nodes_error=sentence, pods_error=sentence)
        for kind in KINDS:
            beat(
                cluster,
                f"watch-{kind}",
                now,
                expected_seconds=WATCH_EXPECTED_SECONDS,
                error=sentence,
            )
