"""The last hours of a node's cards as line charts: SVG paths that a style sheet colours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpuadmin.fleet.models import Gpu
from gpuadmin.ledger.queries import RANGES, Readings, Step
from gpuadmin.web.pictures.text import DASH

WIDTH, HEIGHT = 600, 100
GIB = 2**30
COLOURS = 8
RANGE_WORDS = {"1h": "1 h", "6h": "6 h", "24h": "24 h", "48h": "48 h"}
Value = Callable[[Step], float | None]


@dataclass(frozen=True)
class Line:
    index: int
    colour: int  # 1…8
    path: str
    least: str
    mean: str
    most: str
    last: str


@dataclass(frozen=True)
class Chart:
    title: str
    unit: str
    top: str  # what the upper edge stands for
    lines: list[Line]


@dataclass(frozen=True)
class Charts:
    """``ticks`` are the times along the foot; ``empty``: nothing was read in the range."""

    charts: list[Chart]
    ticks: list[datetime]
    resolution: str
    empty: bool
    legend: list[tuple[int, int]]


def charts(gpus: Iterable[Gpu], found: Readings) -> Charts:
    """Four charts of all cards. A gap in the readings is a gap in the line."""
    cards = [(gpu.index, found.of.get(gpu.pk, [])) for gpu in sorted(gpus, key=lambda g: g.index)]
    every = [step for _, steps in cards for step in steps]
    memory = max((gpu.memory_total_bytes or 0 for gpu in gpus), default=0) / GIB
    quarter = (found.until - found.since) / 4
    return Charts(
        charts=[
            _chart("Utilisation", "%", 100, cards, found, lambda s: s.utilization_percent),
            _chart("Memory", "GiB", memory, cards, found, _gibibytes),
            _chart(
                "Temperature, highest", "°C", 100, cards, found, lambda s: s.temperature_celsius
            ),
            _chart("Power", "W", 0, cards, found, lambda s: s.power_watts),
        ],
        ticks=[found.since + quarter * n for n in range(5)],
        resolution=_resolution(found.step),
        empty=not every,
        legend=[(index, _colour(index)) for index, _ in cards],
    )


def _resolution(step: timedelta) -> str:
    seconds = int(step.total_seconds())
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min"


def _gibibytes(step: Step) -> float | None:
    return None if step.memory_used_bytes is None else step.memory_used_bytes / GIB


def _chart(
    title: str,
    unit: str,
    top: float,
    cards: list[tuple[int, list[Step]]],
    found: Readings,
    value: Value,
) -> Chart:
    values = [v for _, steps in cards for step in steps if (v := value(step)) is not None]
    top = max([top, *values]) or 1
    lines = [_line(index, steps, found, value, top) for index, steps in cards]
    return Chart(title, unit, f"{top:.0f} {unit}", lines)


def _line(index: int, steps: list[Step], found: Readings, value: Value, top: float) -> Line:
    known = [(step.at, v) for step in steps if (v := value(step)) is not None]
    values = [v for _, v in known]
    return Line(
        index=index,
        colour=_colour(index),
        path=_path(known, found, top),
        least=_figure(min(values, default=None)),
        mean=_figure(sum(values) / len(values) if values else None),
        most=_figure(max(values, default=None)),
        last=_figure(values[-1] if values else None),
    )


def _path(known: list[tuple[datetime, float]], found: Readings, top: float) -> str:
    """Lines to points a step apart, moves across gaps; a lone point is a short stroke."""
    span, before, parts = found.until - found.since, None, []
    for at, value in known:
        x = WIDTH * ((at - found.since) / span)
        y = HEIGHT * (1 - value / top)
        joined = before is not None and at - before <= found.step
        parts.append(f"L{x:.1f} {y:.1f}" if joined else f"M{x:.1f} {y:.1f}h1")
        before = at
    return "".join(parts)


def _figure(value: float | None) -> str:
    return DASH if value is None else f"{value:.0f}"


def _colour(index: int) -> int:
    return index % COLOURS + 1


def ranges(chosen: str) -> list[tuple[str, str, bool]]:
    """What the range picker offers: its value, its words, whether it is the one."""
    return [(key, RANGE_WORDS[key], key == chosen) for key in RANGES]
