"""One watcher at a time: a lease on the cluster's row, taken by compare-and-set.

Each new leader has a higher term. A write checks the term in its own transaction, so that a
watcher that was asleep past its lease can't overwrite its successor (design.md section 9).
"""

from __future__ import annotations

import os
import socket
import uuid
from datetime import datetime, timedelta

from django.db.models import F, Q
from django.utils import timezone

from gpuadmin.fleet.models import Cluster

LEASE_SECONDS = 20
RENEW_SECONDS = 5


class LostLeadershipError(Exception):
    """Another watcher leads now; nothing more may be written under the old term."""


class Leader:
    """This process's claim to lead one cluster's watch."""

    def __init__(self, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self.name = f"{socket.gethostname()[:60]}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
        self.term: int | None = None

    def claim(self, now: datetime) -> bool:
        """Take or renew the lease; True while we lead."""
        until = now + timedelta(seconds=LEASE_SECONDS)
        row = Cluster.objects.filter(pk=self.cluster_id)
        if self.term is not None:
            if row.filter(leader=self.name, leader_term=self.term).update(leader_until=until):
                return True
            self.term = None
        free = Q(leader_until__isnull=True) | Q(leader_until__lt=now) | Q(leader="")
        taken = row.filter(free).update(
            leader=self.name, leader_term=F("leader_term") + 1, leader_until=until
        )
        if taken:
            self.term = row.values_list("leader_term", flat=True).get()
        return bool(taken)

    def check(self) -> Cluster:
        """The cluster's row, locked against a change of leader. Raises `LostLeadershipError`."""
        if self.term is None:
            raise LostLeadershipError
        found = (
            Cluster.objects.select_for_update(no_key=True)
            .filter(pk=self.cluster_id, leader=self.name, leader_term=self.term)
            .first()
        )
        if found is None:
            raise LostLeadershipError
        return found

    def prolong(self) -> None:
        """Inside the transaction of `check`: the lease counts from the end of a long batch."""
        until = timezone.now() + timedelta(seconds=LEASE_SECONDS)
        Cluster.objects.filter(pk=self.cluster_id).update(leader_until=until)

    def resign(self) -> None:
        """Let the next one in at once."""
        if self.term is not None:
            Cluster.objects.filter(
                pk=self.cluster_id, leader=self.name, leader_term=self.term
            ).update(leader="", leader_until=None)
            self.term = None
