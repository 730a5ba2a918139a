"""A node's page: its cards as they are cut, its resources and pods, and what happened here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from gpuadmin.fleet.models import Gpu, Node
from gpuadmin.ledger.models import XidEvent
from gpuadmin.operations.models import Operation
from gpuadmin.operations.models import State as Is
from gpuadmin.planning.facts import Note, ResourceRow, Use
from gpuadmin.planning.labels import PRODUCT
from gpuadmin.planning.resources import ResourceName, recognise
from gpuadmin.planning.taints import Taint
from gpuadmin.web.pictures.blocks import CardBox
from gpuadmin.web.pictures.cards import Card
from gpuadmin.web.pictures.operations import STATES, title
from gpuadmin.web.pictures.sentences import GLYPHS
from gpuadmin.web.pictures.states import CRITICAL, USE_WORDS, State
from gpuadmin.web.pictures.text import count, plain
from gpuadmin.web.pictures.waiting import asks
from gpuadmin.workloads.facts import NodeRecord
from gpuadmin.workloads.models import Pod

TELLING = {
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.replicas",
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/mig.config",
    "nvidia.com/mig.config.state",
    "nvidia.com/mig.strategy",
}
NOTES = {
    Note.STALE: "advertised, but no hardware is behind it: left out of every total",
    Note.FAULT: "not between 0 and its capacity: left out of every total",
}


@dataclass(frozen=True)
class Resource:
    short: str
    row: ResourceRow
    unit: str
    note: str


@dataclass(frozen=True)
class PodLine:
    pod: Pod
    holds: str
    cards: str
    glyph: tuple[str, str, str]
    odd: list[str]  # device ids that nobody recognises, as the kubelet gave them (C30)


@dataclass(frozen=True)
class Event:
    at: datetime
    state: State
    head: str
    detail: str
    operation: str = ""


def resources(record: NodeRecord) -> list[Resource]:
    """One line per resource name, in its own unit."""
    found = []
    for row in record.account.rows:
        name = recognise(row.name)
        notes = ". ".join(_notes(record.node, row))
        found.append(Resource(name.short if name else row.name, row, _hardware(name), notes))
    return found


def _notes(node: Node, row: ResourceRow) -> Iterator[str]:
    """What is worth a word about one name: C01, C02, C08, C13."""
    if row.unit == "other":
        yield "other accelerator resources: in no NVIDIA total"
    if row.note:
        yield NOTES[row.note]
    elif row.unhealthy:
        yield f"{row.unhealthy} withdrawn by the device plugin as unhealthy"
    if node.ready is not True and row.requested:
        since = f", {node.ready_since:%d %b %H:%M} UTC" if node.ready_since else ""
        yield f"{row.requested} in use at last contact{since}"


def _hardware(name: ResourceName | None) -> str:
    """What NVML counts behind a name: a shared name's slots are of a card or of a slice."""
    if name is None or not name.nvidia:
        return "device"
    return "slice" if name.profile else "card"


def pods(record: NodeRecord, drawn: Iterable[CardBox]) -> list[PodLine]:
    """Pods that ask for or hold a card here, and which."""
    by_pod: dict[tuple[str, str], list[Card]] = {}
    for box in drawn:
        for holder in box.card.holders:
            by_pod.setdefault((holder.namespace, holder.pod), []).append(box.card)
    odd: dict[tuple[str, str], list[str]] = {}
    for device in record.devices:
        if not device.recognised:
            odd.setdefault((device.namespace, device.pod_name), []).append(plain(device.device_id))
    keys = [(pod, (pod.namespace, pod.name)) for pod in record.pods or ()]
    return [_pod(pod, by_pod.get(key, []), odd.get(key, [])) for pod, key in keys]


def _pod(pod: Pod, held: list[Card], odd: list[str]) -> PodLine:
    worst = next((c for c in held if c.use is Use.FAILED), None) or (held[0] if held else None)
    here = ("wait", "wait", "waiting") if pod.phase == "Pending" else ("busy", "t3", pod.phase)
    glyph = (*GLYPHS[worst.use], USE_WORDS[worst.use]) if worst else here
    cards = ", ".join(str(card.index) for card in held)
    return PodLine(pod, asks(pod.requests), cards, glyph, odd)


def taints(record: NodeRecord) -> list[str]:
    return [plain(str(Taint.of(taint))) for taint in record.node.taints]


def labels(record: NodeRecord) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """First those that say how the node is set up (contracts.md 3.3, 5); then all others."""
    pairs = sorted((plain(key), plain(value)) for key, value in record.node.labels.items())
    telling = [pair for pair in pairs if pair[0] in TELLING or pair[1].startswith("paused")]
    return telling, [pair for pair in pairs if pair not in telling]


def happened(
    xids: Iterable[XidEvent], operations: Iterable[Operation], gpus: Iterable[Gpu]
) -> list[Event]:
    """XIDs, windows in which nobody listened, and our own changes; the newest first."""
    index = {gpu.uuid: gpu.index for gpu in gpus}
    found = [_xid(xid, index) for xid in xids]
    for operation in operations:
        state = STATES[Is(operation.state)]
        detail = f"{state.words}, by {operation.created_by.get_username()}: {operation.reason}"
        found.append(
            Event(operation.created_at, state, title(operation), detail, str(operation.id))
        )
    return sorted(found, key=lambda event: event.at, reverse=True)


def _xid(xid: XidEvent, index: dict[str, int]) -> Event:
    if xid.code is None:
        gap = State(CRITICAL, "unk", "unk", "unknown")
        return Event(xid.at, gap, "Nobody listened for XIDs.", "Events before this may be missing.")
    card = f"GPU {index[xid.gpu_uuid]}" if xid.gpu_uuid in index else "A card"
    state = State(CRITICAL, "crit", "crit", "critical")
    return Event(xid.at, state, f"{card}: XID {xid.code}.", "")


def model_line(record: NodeRecord, drawn: list[CardBox]) -> str:
    """``H100 80GB HBM3 × 8``; of several models each with its count. A label describes one model
    only, and is no more than a label (C11)."""
    models = Counter(box.card.model for box in drawn if box.card.model)
    if not models:
        return count(len(drawn), "card")
    if not record.gpus:
        label = plain(record.node.labels.get(PRODUCT, ""))
        return f"{count(len(drawn), 'card')}. At least one model: the label says {label}"
    if len(models) == 1:
        return f"{min(models)} × {len(drawn)}"
    return " and ".join(f"{cards} × {model}" for model, cards in sorted(models.items()))


def conditions(record: NodeRecord) -> list[tuple[str, str, str]]:
    """Type, status, and what the kubelet says, as it came."""
    return [
        (
            plain(str(one.get("type", ""))),
            plain(str(one.get("status", "Unknown"))),
            plain(str(one.get("message") or one.get("reason") or "")),
        )
        for one in record.node.conditions
    ]
