"""What is wrong now, from what is stored: pure on its records, then one sync (issue 2, part 7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime

from gpuadmin.collect.convert import has_nvidia_label
from gpuadmin.fleet.cards import unread_uuid
from gpuadmin.fleet.models import AgentState, Cluster, Gpu
from gpuadmin.fleet.queries import Freshness, freshness
from gpuadmin.fleet.services import FindingFact, sync_findings
from gpuadmin.workloads.facts import NodeRecord
from gpuadmin.workloads.models import Pod, PodDevice
from gpuadmin.workloads.queries import gpu_records, present_pods, waiting_pods

CODES = (
    "node_not_ready",
    "agent",
    "card_lost",
    "card_missing",
    "unrecognised_device",
    "pods_pending",
    "pods_failed",
    "collection_late",
)
CRITICAL, WARNING = "critical", "warning"
_CYCLES = {
    "watch-nodes": "The watch on nodes",
    "watch-pods": "The watch on pods",
    "poll": "The poll of the agents",
}
_AGENT_ADVICE = {
    AgentState.Status.MISSING: "Look at Set-up: it names the reason and the command.",
    AgentState.Status.REFUSED: "Give the server and the agents the same secret.",
    AgentState.Status.WRONG_NODE: "Nothing of its answer was stored. Look at what runs there.",
}


def refresh_findings(cluster: Cluster, now: datetime) -> None:
    """Look at everything once and bring the table of findings up to date."""
    facts = [
        *(fact for record in gpu_records(cluster, now) for fact in of_node(record)),
        *of_pods(list(waiting_pods(cluster)), list(present_pods(cluster).filter(phase="Failed"))),
        *of_cycles(freshness(cluster, now)),
    ]
    sync_findings(cluster, CODES, facts, now)


def of_node(record: NodeRecord) -> Iterator[FindingFact]:
    """The node itself, its agent, its cards."""
    node = record.node
    if node.ready is not True:
        yield FindingFact(
            code="node_not_ready",
            severity=CRITICAL,
            object_kind="node",
            object_uid=node.uid,
            object_name=node.name,
            node_name=node.name,
            sentence=f"{node.name} is not ready",
            advice=node.ready_reason or "The kubelet has not reported a state.",
        )
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
    return FindingFact(
        code="unrecognised_device",
        severity=WARNING,
        object_kind="node",
        object_uid=record.node.uid,
        object_name=record.node.name,
        node_name=record.node.name,
        sentence=f"{record.node.name} gives out {many} of a form that we do not recognise",
        advice=f"{first.namespace}/{first.pod_name} holds “{first.device_id[:200]}”. It is kept as "
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
    return FindingFact(
        code="agent",
        severity=WARNING,
        object_kind="node",
        object_uid=node.uid,
        object_name=node.name,
        node_name=node.name,
        sentence=f"{node.name} {words[AgentState.Status(status)]}",
        advice=advice,
    )


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


def of_pods(waiting: list[Pod], failed: list[Pod]) -> Iterator[FindingFact]:
    """One finding per owner, however many pods: 12,000 failed pods are one sentence (C25)."""
    for key, pods in _by_owner(waiting).items():
        first = pods[0]
        yield _pods_finding(
            "pods_pending", key, pods, "waits", "wait", first.message or first.reason
        )
    for key, pods in _by_owner(failed).items():
        first = pods[0]
        why = first.message or first.reason
        yield _pods_finding("pods_failed", key, pods, "failed", "failed", why)


def _pods_finding(
    code: str, key: tuple[str, str], pods: list[Pod], one: str, many: str, why: str
) -> FindingFact:
    namespace, owner = key
    asks = ", ".join(f"{n} × {name}" for name, n in pods[0].requests.items())
    subject = (
        f"{namespace}/{pods[0].name} {one}"
        if len(pods) == 1
        else (f"{len(pods)} pods of {namespace}/{owner} {many}")
    )
    return FindingFact(
        code=code,
        severity=WARNING,
        object_kind="pods",
        object_uid=f"{namespace}/{owner}",
        object_name=f"{namespace}/{owner}",
        sentence=f"{subject}: {asks}",
        advice=why or "The scheduler has not said why yet.",
    )


def _by_owner(pods: list[Pod]) -> dict[tuple[str, str], list[Pod]]:
    groups: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        groups[pod.namespace, pod.owner_name or pod.name].append(pod)
    return groups


def of_cycles(cycles: list[Freshness]) -> Iterator[FindingFact]:
    """Our own collection: late is a finding like any other (C42, C43)."""
    for cycle in cycles:
        if not cycle.late and cycle.ok:
            continue
        name = _CYCLES.get(cycle.kind, cycle.kind)
        age = "has not worked yet" if cycle.age_seconds is None else "is late"
        yield FindingFact(
            code="collection_late",
            severity=CRITICAL if cycle.late else WARNING,
            object_kind="cycle",
            object_uid=cycle.kind,
            object_name=cycle.kind,
            sentence=f"{name} {age if cycle.late else 'has a fault'}",
            advice=cycle.message or "Is the process running? Numbers keep their last true values.",
        )
