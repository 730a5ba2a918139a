"""The heat map: models → nodes → cards, as compact as can be: static/js/map.js draws it.

A model is one JSON text: a list of nodes, each ``[name, mark, cordoned, cards, sentences]``.
``mark`` is glyph, tone and words of what is worth a sign at the name, or null. A card is ``[look,
utilisation, memory, temperature, tone, letters, slots, segments]``, cut off after the last that it
has: percent, percent, °C, the colour and the letters of its holder, a "1" or "0" for each
time-slice, and for MIG a list of ``[memory slices, kind, memory, tone, letters]``. What is unknown
is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from gpuadmin.planning.facts import Use
from gpuadmin.web.pictures.cards import Card, cards, tones
from gpuadmin.web.pictures.cuts import Part
from gpuadmin.web.pictures.sentences import sentence
from gpuadmin.web.pictures.states import CORDONED, node_states
from gpuadmin.web.pictures.text import count, plain
from gpuadmin.workloads.facts import NodeRecord

LABEL_FROM = 4  # MIG segments show a number from half a card up
MOST_SENTENCES = 1000  # cards; a larger fleet's cells are named by what they show
LOOKS = {Use.IDLE: "isidle", Use.UNMEASURED: "nm", Use.FREE: "free", Use.BLOCKED: "off"}
GAP, FREE, HELD = range(3)


@dataclass(frozen=True)
class Model:
    name: str
    size: str
    height: int
    rows: str  # JSON


@dataclass(frozen=True)
class HeatMap:
    columns: list[list[Model]]
    namespaces: list[tuple[str, int]]
    others: bool  # namespaces beyond the eight coloured ones hold cards too
    hottest: int | None


def heat_map(records: Iterable[NodeRecord], now: datetime) -> HeatMap:
    """Grouped by model, the largest group first, in two columns of about equal height."""
    records = list(records)
    colours = tones(records)
    drawn = [(record, cards(record, colours)) for record in records]
    heat = [c.temperature_celsius for _, found in drawn for c in found if c.temperature_celsius]
    held = {device.namespace for record in records for device in record.devices}
    spoken = sum(len(found) for _, found in drawn) <= MOST_SENTENCES
    models = [_model(name, group, now if spoken else None) for name, group in _by_model(drawn)]
    return HeatMap(
        columns=_columns(models),
        namespaces=sorted(colours.of.items()),
        others=any(name not in colours.of for name in held),
        hottest=max(heat, default=None),
    )


Drawn = tuple[NodeRecord, list[Card]]


def _by_model(drawn: list[Drawn]) -> list[tuple[str, list[Drawn]]]:
    def model(item: Drawn) -> str:
        return next((card.model for card in item[1] if card.model), "Model unknown")

    ordered = sorted(drawn, key=lambda item: (model(item), item[0].node.name))
    groups = [(name, list(group)) for name, group in groupby(ordered, key=model)]
    return sorted(groups, key=lambda g: (-sum(len(found) for _, found in g[1]), g[0]))


def _columns(models: list[Model]) -> list[list[Model]]:
    """Each model to the column that is shorter so far; a heading is worth two rows."""
    columns: list[list[Model]] = [[], []]
    heights = [0, 0]
    for model in models:
        shorter = heights.index(min(heights))
        columns[shorter].append(model)
        heights[shorter] += model.height + 2
    return columns


def _model(name: str, group: list[Drawn], now: datetime | None) -> Model:
    total = sum(len(found) for _, found in group)
    unified = any(c.gpu and c.gpu.memory_kind == "unified" for _, found in group for c in found)
    size = f"{count(len(group), 'node')} · {count(total, 'card')}"
    rows = [_row(record, found, now) for record, found in group]
    return Model(
        name=name,
        size=size + (", unified memory" if unified else ""),
        height=len(group),
        rows=json.dumps(rows, separators=(",", ":"), ensure_ascii=False),
    )


def _row(record: NodeRecord, found: list[Card], now: datetime | None) -> list[Any]:
    worst = node_states(record)[0]
    return [
        record.node.name,
        [worst.glyph, worst.tone, worst.words] if worst.rank <= CORDONED else None,
        int(record.node.unschedulable),
        [cell(card) for card in found],
        [plain(sentence(card, now)) for card in found] if now else None,
    ]


def cell(card: Card) -> list[Any]:
    """A card as a cell: see the module's text."""
    if card.use is Use.FAILED:
        return ["dead"]
    if not card.known or card.use is Use.UNKNOWN:
        return ["nodata"]
    heat = card.temperature_celsius
    if card.cut == "mig" and any(not part.gap for part in card.parts):
        return ["mig", None, None, heat, None, "", "", [_segment(part) for part in card.parts]]
    tones_of = {holder.tone for holder in card.holders}
    whole = [
        LOOKS.get(card.use, ""),
        card.utilization_percent if card.holders or card.slots else None,
        card.memory_percent,
        heat,
        tones_of.pop() if len(tones_of) == 1 else None,
        _holder(card),
    ]
    return [*whole, _slots(card)] if card.slots else whole


def _slots(card: Card) -> str:
    drawn = card.slots.drawn if card.slots else ()
    return "".join("1" if slot.holder else "0" for slot in drawn)


def _holder(card: Card) -> str:
    if card.slots:
        return f"{card.slots.held}/{card.slots.total}"
    return plain(card.holders[0].letters) if card.holders else ""


def _segment(part: Part) -> list[Any]:
    if part.gap:
        return [part.size, GAP]
    if not part.holders:
        return [part.size, FREE]
    holder = part.holders[0]
    letters = plain(holder.letters) if part.size >= LABEL_FROM else ""
    return [part.size, HELD, part.memory_percent, holder.tone, letters]
