"""Taking one agent's answer: believed whole and stored whole, or not at all.

The atom of a poll cycle is one node's report (design.md section 9).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from agent.contract.report import Report
from gpuadmin.agents.client import Answer, Outcome
from gpuadmin.collect.xids import new_xids
from gpuadmin.fleet.cards import store_cards
from gpuadmin.fleet.fitting import fit, plain
from gpuadmin.fleet.models import AgentState, Gpu, MigInstance, Node
from gpuadmin.fleet.services import set_agent
from gpuadmin.fleet.steady import Standing, note_standing
from gpuadmin.ledger.services import ReadingRow, copy_readings, store_xids
from gpuadmin.planning.reports import impossible, wrong_identity
from gpuadmin.planning.steady import at_work, read_cards, standing
from gpuadmin.workloads.services import recount, store_devices

Status = AgentState.Status
JUST_NOW = timedelta(minutes=2)
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
    if problem := impossible(report) or _elsewhere(node, report, now):
        return _note(node, Status.BAD_ANSWER, problem, now)
    return _store(node, report, now)


def refuse(node_id: int, reason: str, now: datetime) -> None:
    """Note that an answer could not be stored, in a transaction of its own."""
    with transaction.atomic():
        node = Node.objects.select_for_update().filter(pk=node_id, gone_at__isnull=True).first()
        if node is not None:
            _note(node, Status.BAD_ANSWER, plain(reason), now)


def _elsewhere(node: Node, report: Report, now: datetime) -> str:
    """A card is in one machine: which node another agent reports one of these cards from."""
    uuids = [gpu.uuid for gpu in report.gpus if gpu.uuid and gpu.state == "ok"]
    other = (
        Gpu.objects.filter(uuid__in=uuids, state=Gpu.State.OK, read_at__gte=now - JUST_NOW)
        .filter(node__cluster=node.cluster, node__gone_at__isnull=True)
        .exclude(node=node)
        .select_related("node")
        .first()
    )
    return f"It reports card {other.uuid}, which {other.node.name} reports, too." if other else ""


def _note(node: Node, status: AgentState.Status, reason: str, now: datetime) -> str:
    """Without a good report the last true numbers stay, with their age (C38)."""
    before = AgentState.objects.filter(node=node).values_list("status", flat=True).first()
    set_agent(node, status, plain(reason), now, asked_at=now)
    if status != before:  # an agent that goes on hanging changes no count
        recount(node.cluster, [node.name], now)
    return status


def _store(node: Node, report: Report, now: datetime) -> str:
    before = AgentState.objects.filter(node=node).first()
    ids: tuple[list[int], list[int]] = ([], [])
    status = {"ok": Status.OK, "paused": Status.PAUSED, "error": Status.NVML_ERROR}[report.state]
    columns = {
        "asked_at": now,
        "instance": report.agent_instance,
        "version": report.agent_version,
        "clock_skew_seconds": report.sent_at - now.timestamp(),
        "pods_error": (report.pods_error or "") if report.pods is None else "",
        "xid_sequence": report.xid_sequence,
    }
    if status == Status.OK:
        columns |= {
            "reported_at": now,
            "driver_version": report.driver_version or "",
            "cuda_version": report.cuda_version or "",
        }
        ids = _store_readings(node, report, now)
    if report.pods is not None:
        store_devices(node, report.pods)
    store_xids(node, new_xids(node, before, report, now))
    columns |= {"digest": "", "processes_digest": ""}
    set_agent(node, status, plain(report.reason or ""), now, **fit(AgentState, columns))
    if status == Status.OK:
        note_standing(node.pk, Standing(node.pk, standing(report), at_work(report), *ids))
    recount(node.cluster, [node.name], now)
    return status


def _store_readings(node: Node, report: Report, now: datetime) -> tuple[list[int], list[int]]:
    """The ids of the cards that were read and of their instances, in the report's order."""
    read = store_cards(node, report.gpus, held_cards(report), now)
    copy_readings([_row(gpu, now) for gpu in read])
    cards = [gpu.pk for gpu in read]
    stored = MigInstance.objects.filter(gpu__in=cards).values_list("gpu_id", "uuid", "pk")
    by_name = {(gpu_id, uuid): pk for gpu_id, uuid, pk in stored}
    pairs = zip(cards, read_cards(report), strict=True)
    return cards, [by_name[pk, each.uuid] for pk, gpu in pairs for each in gpu.mig_instances]


def held_cards(report: Report) -> set[str] | None:
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
