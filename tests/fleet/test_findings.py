"""Findings are opened, refreshed, resolved and taken up again, many at once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gpuadmin.fleet.models import Finding
from gpuadmin.fleet.services import FindingFact, ensure_cluster, sync_findings

pytestmark = pytest.mark.django_db


def fact(number: int, sentence: str = "It is wrong") -> FindingFact:
    return FindingFact("odd", "warning", "node", f"u{number}", f"n{number}", sentence)


def test_a_finding_that_comes_back_within_an_hour_is_the_same_one_counted() -> None:
    cluster, now = ensure_cluster("test"), timezone.now()
    sync_findings(cluster, ["odd"], [fact(1)], now)
    sync_findings(cluster, ["odd"], [], now + timedelta(minutes=1))
    assert Finding.objects.get().resolved_at == now + timedelta(minutes=1)
    sync_findings(cluster, ["odd"], [fact(1, "Still")], now + timedelta(minutes=30))
    row = Finding.objects.get()
    assert (row.count, row.resolved_at, row.first_seen) == (2, None, now)
    assert (row.sentence, row.last_seen) == ("Still", now + timedelta(minutes=30))
    sync_findings(cluster, ["odd"], [], now + timedelta(minutes=31))
    sync_findings(cluster, ["odd"], [fact(1)], now + timedelta(hours=3))
    assert Finding.objects.count() == 2


def test_an_open_finding_is_refreshed_and_says_what_is_true_now() -> None:
    cluster, now = ensure_cluster("test"), timezone.now()
    sync_findings(cluster, ["odd"], [fact(1), fact(2)], now)
    later = now + timedelta(minutes=1)
    sync_findings(cluster, ["odd"], [fact(1), fact(2, "Worse")], later)
    said = {row.object_name: row.sentence for row in Finding.objects.all()}
    assert said == {"n1": "It is wrong", "n2": "Worse"}
    assert {row.last_seen for row in Finding.objects.all()} == {later}


def test_a_thousand_findings_cost_as_many_statements_as_one() -> None:
    cluster, now = ensure_cluster("test"), timezone.now()
    with CaptureQueriesContext(connection) as one:
        sync_findings(cluster, ["odd"], [fact(0)], now)
    with CaptureQueriesContext(connection) as many:
        sync_findings(cluster, ["other"], [fact(n) for n in range(1, 400)], now)
    assert len(many) <= len(one) + 1
