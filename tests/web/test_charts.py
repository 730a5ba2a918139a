"""The last hours of a node: steps from raw readings, gaps that stay gaps, the same over REST."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from django.test import Client

from gpuadmin.fleet.models import Cluster, Gpu
from gpuadmin.ledger.queries import readings
from gpuadmin.ledger.services import ReadingRow, copy_readings, keep_partitions


@pytest.fixture
def gpu(cluster: Cluster, now: datetime) -> Gpu:
    """A card with readings each 15 s of the last 30 minutes, but for ten minutes in between."""
    gpu = Gpu.objects.get(node__name="h100-01", index=0)
    keep_partitions(now - timedelta(days=1), 240)
    keep_partitions(now, 240)
    rows = []
    for second in range(0, 1800, 15):
        at = now - timedelta(seconds=second)
        if not 600 <= second < 1200:
            rows.append(ReadingRow(at, gpu.pk, 40 * 2**30, 400.0, 50 + second % 2 * 10, 60))
    copy_readings(rows)
    return gpu


def test_a_step_is_the_mean_and_the_highest_temperature(gpu: Gpu, now: datetime) -> None:
    found = readings([gpu.pk], "1h", now)
    assert found.step == timedelta(seconds=30)
    inner = found.of[gpu.pk][1]
    assert (inner.samples, inner.utilization_percent, inner.temperature_celsius) == (2, 55.0, 60)
    assert sum(step.samples for step in found.of[gpu.pk]) == 80


def test_steps_begin_at_the_same_moments_a_little_later(gpu: Gpu, now: datetime) -> None:
    first = {step.at for step in readings([gpu.pk], "6h", now).of[gpu.pk]}
    later = {step.at for step in readings([gpu.pk], "6h", now + timedelta(seconds=7)).of[gpu.pk]}
    assert first == later


def test_a_gap_in_the_readings_is_a_gap_in_the_line(gpu: Gpu, viewer: Client) -> None:
    page = viewer.get("/nodes/h100-01?range=1h").content.decode()
    line = re.search(r'class="line c1" d="([^"]+)"', page)
    assert line is not None
    assert line[1].count("M") == 2
    assert "one point is 30 s" in page


def test_what_was_never_read_is_said_and_drawn_as_nothing(gpu: Gpu, viewer: Client) -> None:
    page = viewer.get("/nodes/h200-01").content.decode()
    assert "Nothing was read in this time" in page
    assert 'class="line' not in page


def test_a_value_that_is_not_measured_is_a_dash_in_the_table(
    gpu: Gpu, now: datetime, viewer: Client
) -> None:
    other = Gpu.objects.get(node__name="a100-03", index=0)
    copy_readings([ReadingRow(now - timedelta(minutes=1), other.pk, 2**30, 90.0, None, 41)])
    page = viewer.get("/nodes/a100-03?range=1h").content.decode()
    row = page[page.index('<td class="half3">Utilisation, %') :].split("</tr>")[0]
    assert row.count("–") == 4


def test_an_unknown_range_is_the_usual_one_on_a_page_and_refused_over_rest(
    gpu: Gpu, viewer: Client
) -> None:
    assert "one point is 2 min" in viewer.get("/nodes/h100-01?range=<x>").content.decode()
    answer = viewer.get(f"/api/v1/nodes/{gpu.node.uid}/readings?range=9h")
    assert answer.status_code == 400


def test_rest_has_the_same_steps_with_null_and_gaps(gpu: Gpu, viewer: Client) -> None:
    told = viewer.get(f"/api/v1/nodes/{gpu.node.uid}/readings?range=1h").json()
    assert told["step_seconds"] == 30
    card = next(card for card in told["cards"] if card["uuid"] == gpu.uuid)
    assert 38 <= len(card["steps"]) <= 42
    assert all(step["samples"] > 0 for step in card["steps"])
    assert [card["steps"] for card in told["cards"][1:]] == [[]] * 7
