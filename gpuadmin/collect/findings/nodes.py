"""The node itself, its agent and its cards."""

from __future__ import annotations

from collections.abc import Iterator

from gpuadmin.collect.convert import has_nvidia_label
from gpuadmin.collect.findings.about import CRITICAL, WARNING, about
from gpuadmin.fleet.cards import unread_uuid
from gpuadmin.fleet.models import AgentState, Gpu
from gpuadmin.fleet.services import FindingFact
from gpuadmin.workloads.facts import NodeRecord
from gpuadmin.workloads.models import PodDevice

CODES = ("node_not_ready", "agent", "card_lost", "card_missing", "unrecognised_device")
_AGENT_ADVICE = {
    AgentState.Status.MISSING: "Look at Set-up: it names the reason and the command.",
    AgentState.Status.REFUSED: "Give the server and the agents the same secret.",
    AgentState.Status.WRONG_NODE: "Nothing of its answer was stored. Look at what runs there.",
}


def of_node(record: NodeRecord) -> Iterator[FindingFact]:
    """The node itself, its agent, its cards."""
    node = record.node
    if node.ready is not True:
        why = node.ready_reason or "The kubelet has not reported a state."
        yield about(node, "node_not_ready", CRITICAL, f"{node.name} is not ready", why)
    agent = record.agent
    answers = agent is not None and agent.status in (AgentState.Status.OK, AgentState.Status.PAUSED)
    if not answers and not _only_others(record):
        yield _agent_finding(record)
    for gpu in record.gpus:
        if gpu.state in (Gpu.State.LOST, Gpu.State.MISSING):
            yield _card_finding(record, gpu)
    if odd := [device for device in record.devices if not device.recognised]:
        yield _odd_devices(record, odd)


def _odd_devices(record: NodeRecord, odd: list[PodDevice]) -> FindingFact:
    """Device ids of a form that nobody knows are kept, and told once a node (C30)."""
    ids = sorted({device.device_id for device in odd})
    many = f"{len(ids)} device ids" if len(ids) > 1 else "a device id"
    first = odd[0]
    return about(
        record.node,
        "unrecognised_device",
        WARNING,
        f"{record.node.name} gives out {many} of a form that we do not recognise",
        f"{first.namespace}/{first.pod_name} holds “{first.device_id[:200]}”. It is kept as "
        "it is, but counts for no card. Tell us which device plugin gives it.",
    )


def _only_others(record: NodeRecord) -> bool:
    """Whether all accelerators of a node are other vendors', of which no agent tells (C08)."""
    rows, ours = record.account.rows, record.gpus or has_nvidia_label(record.node.labels)
    return bool(rows) and all(row.unit == "other" for row in rows) and not ours


def _agent_finding(record: NodeRecord) -> FindingFact:
    node, agent = record.node, record.agent
    status = agent.status if agent else AgentState.Status.MISSING
    words = {
        AgentState.Status.MISSING: "has no agent",
        AgentState.Status.NOT_RUNNING: "has an agent that does not run",
        AgentState.Status.UNREACHABLE: "has an agent that does not answer",
        AgentState.Status.REFUSED: "has an agent that refuses our token",
        AgentState.Status.BAD_ANSWER: "has an agent whose answer can't be used",
        AgentState.Status.WRONG_NODE: "is spoken for by the wrong agent",
        AgentState.Status.NVML_ERROR: "has a driver that does not answer",
    }
    cards = record.account.owned
    advice = " ".join(
        f"{part.rstrip('.')}."
        for part in (
            agent.reason if agent else "No pod of our DaemonSet is on it.",
            f"{cards} cards are known only by the API's count."
            if not record.gpus and cards
            else "",
            _AGENT_ADVICE.get(AgentState.Status(status), ""),
        )
        if part
    )
    sentence = f"{node.name} {words[AgentState.Status(status)]}"
    return about(node, "agent", WARNING, sentence, advice)


def _card_finding(record: NodeRecord, gpu: Gpu) -> FindingFact:
    lost = gpu.state == Gpu.State.LOST
    unread = gpu.uuid == unread_uuid(gpu.index)  # stands for a card of this node alone
    holders = sorted(
        {f"{d.namespace}/{d.pod_name}" for d in record.devices if d.gpu_uuid == gpu.uuid}
    )
    held = f"Still held by {', '.join(holders)}. " if holders else ""
    fix = "Drain the node and reboot it; if it comes back, tell the vendor."
    return FindingFact(
        code="card_lost" if lost else "card_missing",
        severity=CRITICAL,
        object_kind="gpu",
        object_uid=f"{record.node.uid}/{gpu.uuid}" if unread else gpu.uuid,
        object_name=f"{record.node.name} GPU {gpu.index}",
        node_name=record.node.name,
        sentence=f"{record.node.name} GPU {gpu.index} "
        + ("fell off the bus" if lost else "is no longer counted by the driver"),
        advice=held + fix,
    )
