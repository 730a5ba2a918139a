"""A card as a block drawing: slices to scale on eight rows, slots, or one whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gpuadmin.fleet.models import Gpu
from gpuadmin.fleet.queries import why_null
from gpuadmin.planning.facts import Use
from gpuadmin.web.pictures.cards import Card, Tones, cards, tones
from gpuadmin.web.pictures.cuts import Holder, Part, Slot, Slots
from gpuadmin.web.pictures.sentences import GLYPHS, sentence, words
from gpuadmin.web.pictures.states import USE_WORDS
from gpuadmin.web.pictures.text import DASH, and_list, gigabytes, thousands
from gpuadmin.workloads.facts import NodeRecord


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
class Reading:
    """A figure under a card: what it is, and why there is none. ``old``: from the last report of
    an agent that is silent now."""

    value: str
    what: str
    old: bool = False


@dataclass(frozen=True)
class CardBox:
    card: Card
    css: str
    glyph: tuple[str, str]
    words: str
    sentence: str
    blocks: list[Block]
    ticks: bool
    footer: list[Reading]


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
    if card.slots:
        return _slots(card.slots)
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


def _slots(slots: Slots) -> list[Block]:
    drawn = [_slot(slot) for slot in slots.drawn]
    if not slots.more:
        return drawn
    held = slots.held - sum(slot.holder is not None for slot in slots.drawn)
    words = f"{thousands(held)} of them held" if held else "free"
    return [*drawn, Block("un", f"and {thousands(slots.more)} more", value=words)]


def _slot(slot: Slot) -> Block:
    if slot.holder is None:
        return Block("free", lines=(f"slot {slot.number}",), value="free")
    name = f"slot {slot.number}"
    return Block(f"n{slot.holder.tone}", slot.holder.pod, (name,), "", f"{name}: {slot.holder}")


def _whole(card: Card) -> list[Block]:
    if not card.known:
        return [
            Block(
                "r1 x8 un tall", USE_WORDS[card.use], (card.reason or card.unread,), title=card.dark
            )
        ]
    if card.use is Use.FAILED:
        return _failed(card)
    if not card.holders:
        if card.use is Use.FREE:
            return [Block("r1 x8 free tall", "free")]
        head = "nobody holds it" if card.use is Use.BLOCKED else USE_WORDS[card.use]
        return [Block("r1 x8 un tall", head, (card.reason,))]
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
            _held_by(card.holders),
            None if idle else busy,
        )
    ]


def _failed(card: Card) -> list[Block]:
    dark = Block("r5 x4 un tall", lines=(card.unread,), title=card.dark)
    if not card.holders:
        return [Block("r1 x8 un tall", lines=(card.unread,), title=card.dark)]
    holder = card.holders[0]
    line = (f"{holder.namespace} · whole card",)
    css = f"r1 x4 n{holder.tone} tall bad"
    return [
        Block(css, holder.pod, line, "still bound, cannot work", _held_by(card.holders)),
        dark,
    ]


def _held_by(holders: Iterable[Holder]) -> str:
    return "held by " + and_list(map(str, holders))


def _footer(card: Card) -> list[Reading]:
    """What the card does; of one whose agent is silent, what it did when last read."""
    gpu = card.gpu
    old = bool(card.dark and gpu and gpu.read_at and gpu.state == Gpu.State.OK)
    read = gpu if gpu and old else card
    total = gpu.memory_total_bytes if gpu else None
    unified = gpu is not None and gpu.memory_kind == "unified"
    memory = "unified" if unified else gigabytes(read.memory_used_bytes, total)
    found = [
        (read.utilization_percent, " %", _what(card, "utilisation", "utilization_percent")),
        (read.temperature_celsius, "°", _what(card, "temperature", "temperature_celsius")),
        (read.power_watts, " W", _what(card, "power", "power_watts")),
    ]
    readings = [Reading(f"{_or_dash(value)}{unit}", what, old) for value, unit, what in found]
    return [readings[0], Reading(memory, _memory(card, unified), old), *readings[1:]]


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
