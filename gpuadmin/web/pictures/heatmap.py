"""The heat map: models → nodes → cells. Each mode's bucket is a class: switching needs nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from gpuadmin.planning.facts import Use
from gpuadmin.web.pictures.cards import Card, cards, tones
from gpuadmin.web.pictures.cuts import Part
from gpuadmin.web.pictures.sentences import sentence
from gpuadmin.web.pictures.states import CORDONED, State, node_states
from gpuadmin.web.pictures.text import DASH, count
from gpuadmin.workloads.facts import NodeRecord

COLDEST_CELSIUS, CELSIUS_PER_STEP = 30, 5
LABEL_FROM = 4  # MIG segments show a number from half a card up


@dataclass(frozen=True)
class Segment:
    """A part of a cell in MIG mode."""

    classes: str
    memory: str = ""
    holder: str = ""


@dataclass(frozen=True)
class Cell:
    """One card. ``pips``: one per time-slice, True where it is held."""

    href: str
    sentence: str
    classes: str
    mark: str = ""  # "x" failed, "?" unknown; else the values of the four modes
    utilization: str = ""
    memory: str = ""
    holder: str = ""
    temperature: str = ""
    segments: tuple[Segment, ...] = ()
    pips: tuple[bool, ...] = ()


@dataclass(frozen=True)
class Row:
    name: str
    state: State | None  # what is worth a mark at the name
    cordoned: bool
    cells: list[Cell]


@dataclass(frozen=True)
class Model:
    name: str
    size: str
    rows: list[Row]


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
    return HeatMap(
        columns=_columns([_model(name, group, now) for name, group in _by_model(drawn)]),
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
        heights[shorter] += len(model.rows) + 2
    return columns


def _model(name: str, group: list[Drawn], now: datetime) -> Model:
    total = sum(len(found) for _, found in group)
    unified = any(c.gpu and c.gpu.memory_kind == "unified" for _, found in group for c in found)
    size = f"{count(len(group), 'node')} · {count(total, 'card')}"
    return Model(
        name=name,
        size=size + (", unified memory" if unified else ""),
        rows=[_row(record, found, now) for record, found in group],
    )


def _row(record: NodeRecord, found: list[Card], now: datetime) -> Row:
    worst = node_states(record)[0]
    return Row(
        name=record.node.name,
        state=worst if worst.rank <= CORDONED else None,
        cordoned=record.node.unschedulable,
        cells=[cell(card, now) for card in found],
    )


def cell(card: Card, now: datetime) -> Cell:
    """A card as a cell."""
    href, text = f"#gpu-{card.index}", sentence(card, now)
    if card.use is Use.FAILED:
        return Cell(href, text, "dead", mark="x")
    if not card.known or card.use is Use.UNKNOWN:
        return Cell(href, text, "nodata", mark="?")
    if card.cut == "mig" and any(not part.gap for part in card.parts):
        return Cell(
            href,
            text,
            " ".join(filter(None, ["mig", _heat(card)])),
            temperature=_text(card.temperature_celsius),
            segments=tuple(_segment(part) for part in card.parts),
        )
    return Cell(
        href,
        text,
        " ".join(filter(None, [_look(card), _ramps(card)])),
        utilization=_text(card.utilization_percent) if card.holders or card.slots else "",
        memory=_text(card.memory_percent),
        holder=_holder(card),
        temperature=_text(card.temperature_celsius),
        pips=tuple(s.holder is not None for s in card.slots.drawn) if card.slots else (),
    )


def _look(card: Card) -> str:
    look = {Use.IDLE: "isidle", Use.UNMEASURED: "nm", Use.FREE: "free", Use.BLOCKED: "off"}
    return " ".join(filter(None, ["ts" if card.slots else "", look.get(card.use, "")]))


def _ramps(card: Card) -> str:
    if card.use in (Use.FREE, Use.BLOCKED):
        return _heat(card)
    names = {holder.tone for holder in card.holders}
    return " ".join(
        filter(
            None,
            [
                bucket("hu", card.utilization_percent),
                bucket("hm", card.memory_percent),
                _heat(card),
                f"ha{names.pop()}" if len(names) == 1 else "",
            ],
        )
    )


def bucket(ramp: str, value: int | None) -> str:
    """``hu8`` for 88 %; empty when unknown."""
    return "" if value is None else f"{ramp}{min(9, max(0, value) // 10)}"


def _heat(card: Card) -> str:
    if card.temperature_celsius is None:
        return ""
    step = (card.temperature_celsius - COLDEST_CELSIUS) // CELSIUS_PER_STEP
    return f"ht{min(9, max(0, step))}"


def _text(value: int | None) -> str:
    return DASH if value is None else str(value)


def _holder(card: Card) -> str:
    if card.slots:
        return f"{card.slots.held}/{card.slots.total}"
    return card.holders[0].letters if card.holders else ""


def _segment(part: Part) -> Segment:
    if part.gap:
        return Segment(f"w{part.size} gap")
    if not part.holders:
        return Segment(f"w{part.size} free")
    classes = [f"w{part.size}", "nm", bucket("hm", part.memory_percent)]
    classes.append(f"ha{part.holders[0].tone}")
    labelled = part.size >= LABEL_FROM
    return Segment(
        " ".join(filter(None, classes)),
        memory=_text(part.memory_percent) if labelled else "",
        holder=part.holders[0].letters if labelled else "",
    )
