"""C45 and fault 16: the node's clock dates nothing. And the arithmetic of the default times."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.conf import settings
from django.db import connection

from gpuadmin import ears, env
from tests.collect.test_reports import Fleet, card, fleet

__all__ = ["fleet"]
MINUTE, HOUR = 60.0, 3600.0


def stored_times() -> list[datetime]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT at FROM ledger_reading ORDER BY at")
        return [at for (at,) in cursor.fetchall()]


@pytest.mark.django_db
@pytest.mark.parametrize("skew_seconds", [HOUR, -HOUR, 3 * HOUR, -47 * MINUTE])
def test_c45_readings_of_a_wrong_clock_are_dated_by_ours(fleet: Fleet, skew_seconds: float) -> None:
    came = []
    for _ in range(3):
        sent = fleet.now.timestamp() + 1 + skew_seconds
        assert fleet.report(card(0), sent_at=sent) == "ok"
        came.append(fleet.now)
    assert stored_times() == came
    assert fleet.agent.reported_at == fleet.now
    assert fleet.agent.clock_skew_seconds == pytest.approx(skew_seconds, abs=2)


@pytest.mark.django_db
def test_c45_a_clock_that_runs_backwards_gives_no_gap_and_no_flapping(fleet: Fleet) -> None:
    begun = fleet.now
    for back in range(5):
        sent = begun.timestamp() - back * HOUR
        assert fleet.report(card(0), sent_at=sent) == "ok"
    times = stored_times()
    assert len(times) == 5
    assert times == sorted(set(times))
    assert times[-1] <= begun + timedelta(seconds=5)
    assert fleet.record.agent_current


def test_the_default_times_fit_into_each_other() -> None:
    poll, answer = env.POLL_SECONDS.default, env.AGENT_TIMEOUT_SECONDS.default
    assert (poll, answer) == (15, 3)
    assert 1.1 * answer < poll, "a cycle with hanging agents ends before the next one"
    assert poll > ears.DEAF_SECONDS + ears.LOOK_SECONDS, "deafness is found within one interval"
    visible = settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"]
    assert visible > settings.CELERY_TASK_TIME_LIMIT, "nobody gets a message that another runs"


def test_c43_every_message_of_the_timetable_expires_when_the_next_is_due() -> None:
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        assert entry["options"]["expires"] <= entry["schedule"].total_seconds()
