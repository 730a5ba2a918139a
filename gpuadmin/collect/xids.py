"""Which XIDs of a report are new, and whether some can have been missed (design.md section 9)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent.contract.report import Report
from gpuadmin.fleet.models import AgentState, Node
from gpuadmin.ledger.models import XidEvent

EVER = datetime.min.replace(tzinfo=UTC)
SLACK = timedelta(seconds=2)  # the age of listening is taken a moment before the answer comes


def new_xids(
    node: Node, before: AgentState | None, report: Report, now: datetime
) -> list[XidEvent]:
    """Rows to store: each XID not seen yet, and one without a code for a window unlistened to."""
    instance = report.agent_instance[:64]
    same = before is not None and before.instance == instance
    seen = before.xid_sequence if before is not None and same else 0
    fresh = [xid for xid in report.xids if xid.sequence > seen]
    events = [
        XidEvent(
            node=node,
            at=now - timedelta(seconds=max(0.0, xid.age_seconds)),
            gpu_uuid=(xid.gpu_uuid or "")[:80],
            code=xid.code,
            agent_instance=instance,
            sequence=xid.sequence,
        )
        for xid in fresh
    ]
    overflowed = bool(fresh) and fresh[0].sequence > seen + 1
    if overflowed or _was_away(before, report, now, same=same):
        number = -int(now.timestamp())  # below every sequence, and another one for each gap
        events.append(XidEvent(node=node, at=now, agent_instance=instance, sequence=number))
    return events


def listens_since(report: Report, now: datetime) -> datetime:
    """Since when the agent has listened for XIDs without a break, as far as it tells."""
    return now - timedelta(seconds=report.xids_from) if report.xids_from is not None else EVER


def _was_away(before: AgentState | None, report: Report, now: datetime, *, same: bool) -> bool:
    """Whether nobody listened for a while since the last good report: the agent restarted, was
    told to let go of NVML, or let go by itself when nobody asked."""
    if before is None or not before.instance or report.state != "ok":
        return False
    if not same or before.reported_at is None:
        return not same
    return listens_since(report, now) > before.reported_at + SLACK
