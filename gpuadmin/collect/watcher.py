"""The watcher: nodes and pods by list + watch, into the store in batches of at most 200 ms."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

from django.conf import settings
from django.db import DatabaseError, close_old_connections, transaction
from django.utils import timezone

from gpuadmin.collect.batches import Batch, FromNodes, FromPods, FromStream
from gpuadmin.collect.findings import refresh_findings
from gpuadmin.collect.leader import RENEW_SECONDS, Leader, LostLeadershipError
from gpuadmin.collect.reading import node_reader, pod_reader
from gpuadmin.fleet.models import Cluster
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.stream import stream

log = logging.getLogger(__name__)
BATCH_SECONDS = 0.2
FINDINGS_SECONDS = 30.0


class Watcher:
    """One leader's turn: two streams feed one queue; one thread writes.

    ``stop`` ends it within a second or two, whichever thread sets it.
    """

    def __init__(
        self,
        cluster: Cluster,
        client: KubeClient,
        leader: Leader,
        batch: Batch,
        stop: threading.Event,
    ) -> None:
        self.cluster = cluster
        self.client = client
        self.leader = leader
        self.batch = batch
        self.stop = stop
        self._ended = threading.Event()
        self._changes: queue.Queue[FromStream] = queue.Queue(maxsize=10_000)

    def run(self) -> None:
        """Lead until stopped or until another leads. Database trouble ends the turn, too: the
        caller starts a new one, which lists everything again."""
        for feed in (self._feed_nodes, self._feed_pods):
            threading.Thread(target=feed, name=feed.__name__, daemon=True).start()
        try:
            self._write_until_ended()
        except LostLeadershipError:
            log.warning("Another watcher leads now; this one waits.")
        except DatabaseError:
            log.exception("The database failed; the watch starts again.")
        finally:
            self._ended.set()
            close_old_connections()

    def _sleep(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not (self._ended.is_set() or self.stop.is_set()):
            left = end - time.monotonic()
            if left <= 0:
                return False
            self._ended.wait(min(left, 1.0))
        return True

    def _feed_nodes(self) -> None:
        changes = stream(self.client, "/api/v1/nodes", node_reader(), sleep=self._sleep)
        self._feed(FromNodes(change) for change in changes)

    def _feed_pods(self) -> None:
        read = pod_reader(settings.NAMESPACE, loopback=settings.LOOPBACK_AGENTS)
        changes = stream(self.client, "/api/v1/pods", read, sleep=self._sleep)
        self._feed(FromPods(change) for change in changes)

    def _feed(self, changes: Iterator[FromStream]) -> None:
        """Hand changes over until nobody takes them. A stream that breaks in a way that nobody
        foresaw ends the turn: a leader that reads nothing must not go on leading."""
        try:
            for change in changes:
                if not self._put(change):
                    return
        except Exception:
            log.exception("A stream broke off; the watch starts again.")
        finally:
            self._ended.set()

    def _put(self, change: FromStream) -> bool:
        """False when nobody takes changes any more."""
        while not (self._ended.is_set() or self.stop.is_set()):
            with suppress(queue.Full):
                self._changes.put(change, timeout=1.0)
                return True
        return False

    def _write_until_ended(self) -> None:
        renew = _Every(RENEW_SECONDS, first=False)
        findings = _Every(FINDINGS_SECONDS, first=False)
        while not (self.stop.is_set() or self._ended.is_set()):
            changes = self._collect()
            if renew.due() and not self.leader.claim(timezone.now()):
                raise LostLeadershipError
            if changes:
                self._write(changes)
            if findings.due():
                refresh_findings(self.cluster, timezone.now())

    def _collect(self) -> list[FromStream]:
        """Everything that comes within 200 ms of the first change; nothing after a second."""
        try:
            changes = [self._changes.get(timeout=1.0)]
        except queue.Empty:
            return []
        end = time.monotonic() + BATCH_SECONDS
        while (left := end - time.monotonic()) > 0:
            try:
                changes.append(self._changes.get(timeout=left))
            except queue.Empty:
                break
        return changes

    def _write(self, changes: list[FromStream]) -> None:
        with transaction.atomic():
            cluster = self.leader.check()
            self.batch.apply(cluster, changes, timezone.now())
            self.leader.prolong()  # a first list may take longer than the lease


class _Every:
    """True at most once per interval."""

    def __init__(self, seconds: float, *, first: bool) -> None:
        self._seconds = seconds
        self._next = time.monotonic() + (0 if first else seconds)

    def due(self) -> bool:
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + self._seconds
        return True
