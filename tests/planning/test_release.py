"""When an agent must let go of NVML, and for how long at most (C18)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gpuadmin import env
from gpuadmin.planning.release import change_signalled, release_for

SINCE = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
PENDING = {"nvidia.com/mig.config.state": "pending"}
POLL = env.POLL_SECONDS.default
LIMIT = env.RELEASE_LIMIT_SECONDS.default


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (PENDING, "mig.config.state is pending"),
        ({"nvidia.com/mig.config.state": "rebooting"}, "mig.config.state is rebooting"),
        (
            {"nvidia.com/gpu.deploy.client": "paused-for-mig-change"},
            "gpu.deploy.client is paused-for-mig-change",
        ),
        (
            {
                "nvidia.com/gpu.deploy.driver": "true",
                "nvidia.com/gpu.deploy.device-plugin": "paused-for-driver-upgrade",
            },
            "gpu.deploy.device-plugin is paused-for-driver-upgrade",
        ),
    ],
)
def test_c18_a_change_is_signalled_by_its_state_or_by_a_paused_operand(
    labels: dict[str, str], told: str
) -> None:
    assert told in change_signalled(labels)


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"nvidia.com/mig.config.state": "success", "nvidia.com/gpu.deploy.client": "true"},
        {"nvidia.com/mig.config.state": "failed", "nvidia.com/gpu.deploy.client": "false"},
        {"example.com/gpu.deploy.client": "paused-for-mig-change", "nvidia.com/mig.config": "x"},
    ],
)
def test_c18_other_labels_and_none_signal_nothing(labels: dict[str, str]) -> None:
    assert release_for(labels, SINCE, SINCE, poll_seconds=POLL, limit_seconds=LIMIT) is None


def test_c18_a_release_outlives_two_polls_and_what_an_agent_takes_is_its_most() -> None:
    seconds = {}
    for poll in (5, POLL, 3600):
        release = release_for(PENDING, SINCE, SINCE, poll_seconds=poll, limit_seconds=LIMIT)
        assert release is not None
        seconds[poll] = release.seconds
    assert seconds == {5: 30, 15: 45, 3600: 600}


def test_c18_it_is_renewed_for_half_an_hour_and_no_longer() -> None:
    assert LIMIT == 30 * 60
    last = SINCE + timedelta(seconds=LIMIT - 1)
    assert release_for(PENDING, SINCE, last, poll_seconds=POLL, limit_seconds=LIMIT) is not None
    assert (
        release_for(
            PENDING, SINCE, SINCE + timedelta(seconds=LIMIT), poll_seconds=POLL, limit_seconds=LIMIT
        )
        is None
    )
