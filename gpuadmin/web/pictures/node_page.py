"""A node's page: its cards as they are cut, its resources and pods, and what happened here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from gpuadmin.fleet.models import Gpu, Node
from gpuadmin.fleet.queries import why_null
from gpuadmin.ledger.models import XidEvent
from gpuadmin.operations.models import Operation
from gpuadmin.operations.models import State as Is
from gpuadmin.planning.facts import Note, ResourceRow, Use
from gpuadmin.planning.resources import ResourceName, recognise
from gpuadmin.planning.taints import Taint
from gpuadmin.web.pictures.cards import Card, Holder, Part, Slot, Tones, cards, tones
from gpuadmin.web.pictures.operations import STATES, title
from gpuadmin.web.pictures.sentences import GLYPHS, sentence, words
from gpuadmin.web.pictures.states import CRITICAL, State
from gpuadmin.web.pictures.text import DASH, and_list, count, gigabytes, plain, thousands
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
class Block:
    """One stretch of a card's drawing. ``css`` places and colours it; ``fill`` is percent busy."""

    css: str
    head: str = ""
    lines: tuple[str, ...] = ()
    value: str = ""
    title: str = ""
    fill: int | None = None


@dataclass(frozen=True)
class CardBox:
    card: Card
    css: str
    glyph: tuple[str, str]
    words: str
    sentence: str
    blocks: list[Block]
    ticks: bool
    footer: list[tuple[str, str]]  # value; what it is, and why there is none


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


def boxes(record: NodeRecord, now: datetime) -> tuple[list[CardBox], Tones]:
    """Every card of the node, and the colours that its namespaces have here."""
    colours = tones([record])
    return [_box(card, now) for card in cards(record, colours)], colours


def _box(card: Card, now: datetime) -> CardBox:
    css = {Use.FAILED: "bad", Use.IDLE: "isidle"}.get(card.use, "")
    shape = {"mig": "", "slots": "flat slots"}.get(card.cut, "flat whole")
    return CardBox(
        card=card,
        css=f"{css} {shape}".strip(),
        glyph=GLYPHS[card.use],
        words=words(card, now),
        sentence=sentence(card, now),
        blocks=_blocks(card),
        ticks=card.cut == "mig",
        footer=_footer(card),
    )


def _blocks(card: Card) -> list[Block]:
    if card.cut == "mig":
        return [_part(part) for part in card.parts]
    if card.cut == "slots":
        return [_slot(slot) for slot in card.slots]
    return _whole(card)


def _part(part: Part) -> Block:
    place = f"r{part.row} x{part.size}"
    if part.gap:
        return Block(f"{place} un", "no instance" if part.size > 1 else "not used")
    if not part.holders:
        return Block(f"{place} free", lines=(part.profile,), value="free")
    holder, more = part.holders[0], len(part.holders) - 1
    memory = DASH if part.memory_percent is None else f"{part.memory_percent} % mem"
    return Block(
        f"{place} n{holder.tone} {'two' if part.size > 1 else ''}".strip(),
        holder.pod + (f" and {more} more" if more else ""),
        (f"{holder.namespace} · {part.profile}",) if part.size > 1 else (part.profile,),
        memory,
        f"{part.profile}: " + and_list(map(str, part.holders)),
    )


def _slot(slot: Slot) -> Block:
    if slot.holder is None:
        return Block("free", lines=(f"slot {slot.number}",), value="free")
    name = f"slot {slot.number}"
    return Block(f"n{slot.holder.tone}", slot.holder.pod, (name,), "", f"{name}: {slot.holder}")


def _whole(card: Card) -> list[Block]:
    if not card.known:
        return [Block("r1 x8 un tall", card.use.value, (card.reason or card.dark,))]
    if card.use is Use.FAILED:
        return _failed(card)
    if not card.holders:
        if card.use is Use.FREE:
            return [Block("r1 x8 free tall", "free")]
        return [Block("r1 x8 un tall", "nobody holds it", (card.reason,))]
    holder = card.holders[0]
    idle = "isidle" if card.use is Use.IDLE else ""
    busy = card.utilization_percent
    others = [f"and {other}" for other in card.holders[1:3]]
    return [
        Block(
            f"r1 x8 n{holder.tone} tall {idle}".strip(),
            holder.pod,
            (f"{holder.namespace} · whole card", *others),
            f"{busy} % busy" if busy is not None else card.reason,
            sentence_of(card.holders),
            None if idle else busy,
        )
    ]


def _failed(card: Card) -> list[Block]:
    dark = Block("r5 x4 un tall", lines=(card.dark,))
    if not card.holders:
        return [Block("r1 x8 un tall", lines=(card.dark,))]
    holder = card.holders[0]
    line = (f"{holder.namespace} · whole card",)
    css = f"r1 x4 n{holder.tone} tall bad"
    return [
        Block(css, holder.pod, line, "still bound, cannot work", sentence_of(card.holders)),
        dark,
    ]


def sentence_of(holders: Iterable[Holder]) -> str:
    return "held by " + and_list(map(str, holders))


def _footer(card: Card) -> list[tuple[str, str]]:
    gpu = card.gpu
    total = gpu.memory_total_bytes if gpu else None
    unified = gpu is not None and gpu.memory_kind == "unified"
    memory = "unified" if unified else gigabytes(card.memory_used_bytes, total)
    return [
        (
            f"{_or_dash(card.utilization_percent)} %",
            _what(card, "utilisation", "utilization_percent"),
        ),
        (memory, _memory(card, unified)),
        (
            f"{_or_dash(card.temperature_celsius)}°",
            _what(card, "temperature", "temperature_celsius"),
        ),
        (f"{_or_dash(card.power_watts)} W", _what(card, "power", "power_watts")),
    ]


def _what(card: Card, words: str, field: str) -> str:
    """What a figure is, and why there is none."""
    why = card.dark or (why_null(card.gpu).get(field, "") if card.gpu else "")
    return f"{words}: {why}" if why else words


def _memory(card: Card, unified: bool) -> str:
    if unified and card.memory_used_bytes is not None and not card.dark:
        mebibytes = thousands(card.memory_used_bytes // 2**20)
        return f"memory shared with the system; its processes use {mebibytes} MiB"
    return _what(card, "memory in use", "memory_total_bytes" if unified else "memory_used_bytes")


def _or_dash(value: float | None) -> str:
    return DASH if value is None else f"{value:.0f}"


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
    glyph = (*GLYPHS[worst.use], worst.use.value) if worst else ("wait", "wait", pod.phase)
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
    """``H100 80GB HBM3 × 8``."""
    models = {box.card.model for box in drawn if box.card.model}
    if len(models) == 1:
        return f"{models.pop()} × {len(drawn)}"
    return count(len(drawn), "card")


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
