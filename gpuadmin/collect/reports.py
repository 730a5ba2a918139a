"""Taking one agent's answer: believed whole and stored whole, or not at all.

The atom of a poll cycle is one node's report (design.md section 9).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from agent.contract.report import Report
from gpuadmin.agents.client import Answer, Outcome
from gpuadmin.fleet.cards import store_cards
from gpuadmin.fleet.models import AgentState, Gpu, Node
from gpuadmin.fleet.services import set_agent
from gpuadmin.ledger.models import XidEvent
from gpuadmin.ledger.services import ReadingRow, copy_readings, store_xids
from gpuadmin.planning.reports import impossible, wrong_identity
from gpuadmin.workloads.services import recount, store_devices

Status = AgentState.Status
_OF_OUTCOME = {
    Outcome.UNREACHABLE: Status.UNREACHABLE,
    Outcome.REFUSED: Status.REFUSED,
    Outcome.BAD_ANSWER: Status.BAD_ANSWER,
}


@transaction.atomic
def take(node_id: int, answer: Answer, now: datetime) -> str:
    """Store an answer for a node. Returns the agent's status afterwards ("gone" with the node).

    ``now`` is when the answer came, by the server's clock: all that is stored is dated by it.
    """
    node = Node.objects.select_for_update().filter(pk=node_id, gone_at__isnull=True).first()
    if node is None:
        return "gone"
    report = answer.report
    if report is None:
        return _note(node, _OF_OUTCOME[answer.outcome], answer.reason, now)
    wrong = wrong_identity(
        report,
        node_name=node.name,
        pod_uid=answer.endpoint.pod_uid,
        boot_id=node.info.get("bootID"),
        machine_id=node.info.get("machineID"),
    )
    if wrong:
        return _note(node, Status.WRONG_NODE, wrong, now)
    if problem := impossible(report):
        return _note(node, Status.BAD_ANSWER, problem, now)
    return _store(node, report, now)


def _note(node: Node, status: AgentState.Status, reason: str, now: datetime) -> str:
    """Without a good report the last true numbers stay, with their age (C38)."""
    set_agent(node, status, reason, now, asked_at=now)
    recount(node.cluster, [node.name], now)
    return status


def _store(node: Node, report: Report, now: datetime) -> str:
    before = AgentState.objects.filter(node=node).first()
    status = {"ok": Status.OK, "paused": Status.PAUSED, "error": Status.NVML_ERROR}[report.state]
    columns = {
        "asked_at": now,
        "instance": report.agent_instance[:64],
        "version": report.agent_version[:40],
        "clock_skew_seconds": report.sent_at - now.timestamp(),
        "pods_error": (report.pods_error or "") if report.pods is None else "",
        "xid_sequence": report.xid_sequence,
    }
    if status == Status.OK:
        columns |= {
            "reported_at": now,
            "driver_version": (report.driver_version or "")[:40],
            "cuda_version": (report.cuda_version or "")[:20],
        }
        _store_readings(node, report, now)
    if report.pods is not None:
        store_devices(node, report.pods)
    store_xids(node, _new_xids(node, before, report, now))
    set_agent(node, status, report.reason or "", now, **columns)
    recount(node.cluster, [node.name], now)
    return status


def _store_readings(node: Node, report: Report, now: datetime) -> None:
    read = store_cards(node, report.gpus, _held(report), now)
    copy_readings([_row(gpu, now) for gpu in read])


def _held(report: Report) -> set[str] | None:
    """UUIDs of cards of which a container holds any part; None when the kubelet didn't tell."""
    if report.pods is None:
        return None
    card_of = {i.uuid: gpu.uuid for gpu in report.gpus for i in gpu.mig_instances}
    devices = [device for holder in report.pods for device in holder.devices]
    return {
        uuid
        for device in devices
        if (uuid := device.gpu_uuid or card_of.get(device.mig_uuid or ""))
    }


def _row(gpu: Gpu, now: datetime) -> ReadingRow:
    return ReadingRow(
        at=now,
        gpu_id=gpu.pk,
        memory_used_bytes=gpu.memory_used_bytes,
        power_watts=gpu.power_watts,
        utilization_percent=gpu.utilization_percent,
        temperature_celsius=gpu.temperature_celsius,
    )


def _new_xids(
    node: Node, before: AgentState | None, report: Report, now: datetime
) -> list[XidEvent]:
    """XIDs not seen yet, and one gap row when some can have been missed (design.md section 9)."""
    same = before is not None and before.instance == report.agent_instance
    seen = before.xid_sequence if before is not None and same else 0
    fresh = [xid for xid in report.xids if xid.sequence > seen]
    events = [
        XidEvent(
            node=node,
            at=now - timedelta(seconds=max(0.0, xid.age_seconds)),
            gpu_uuid=xid.gpu_uuid or "",
            code=xid.code,
            agent_instance=report.agent_instance[:64],
            sequence=xid.sequence,
        )
        for xid in fresh
    ]
    restarted = before is not None and bool(before.instance) and not same
    overflowed = bool(fresh) and fresh[0].sequence > seen + 1
    if restarted or overflowed:
        events.append(
            XidEvent(
                node=node, at=now, agent_instance=report.agent_instance[:64], sequence=-seen - 1
            )
        )
    return events
