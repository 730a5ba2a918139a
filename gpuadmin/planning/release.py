"""When an agent has to let go of NVML, because somebody changes the node (C18).

Whoever holds NVML keeps a card from being reset. The MIG manager and the driver upgrade say in
labels that they are at work, and take them away at the end (contracts.md 2 and 3.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from agent.contract.report import MAX_RELEASE_SECONDS, ReleaseRequest
from gpuadmin.planning.labels import CHANGING, MIG_STATE

DEPLOY = "nvidia.com/gpu.deploy."
PAUSED = "paused-"
MIN_SECONDS = 30


def change_signalled(labels: Mapping[str, str]) -> str:
    """The sentence that says which change the labels signal; "" when they signal none."""
    state = labels.get(MIG_STATE, "")
    if state in CHANGING:
        return f"The MIG layout of the node is being changed: mig.config.state is {state}."
    for name in sorted(labels):
        if name.startswith(DEPLOY) and labels[name].startswith(PAUSED):
            what = name.removeprefix("nvidia.com/")
            return f"The node is being changed: {what} is {labels[name]}."
    return ""


def release_for(
    labels: Mapping[str, str],
    since: datetime,
    now: datetime,
    *,
    poll_seconds: int,
    limit_seconds: float,
) -> ReleaseRequest | None:
    """What to tell the agent of a node whose labels signal a change ``since`` that time.

    Each poll renews it; it outlives two polls that fail, and ends by itself soon after the signal.
    None without a signal, and once it has stood for ``limit_seconds``: it may be left behind.
    """
    reason = change_signalled(labels)
    if not reason or now - since >= timedelta(seconds=limit_seconds):
        return None
    seconds = min(MAX_RELEASE_SECONDS, max(MIN_SECONDS, 3 * poll_seconds))
    return ReleaseRequest(seconds=seconds, reason=reason)
