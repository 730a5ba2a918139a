"""A card in one sentence: the accessible name of its cell, and the words of its state."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from gpuadmin.planning.facts import Use
from gpuadmin.web.pictures.cards import Card
from gpuadmin.web.pictures.text import age, and_list, count

GLYPHS = {
    Use.BUSY: ("busy", "busy"),
    Use.QUIET: ("busy", "t3"),
    Use.IDLE: ("idle", "idle"),
    Use.UNMEASURED: ("busy", "t3"),
    Use.FAILED: ("crit", "crit"),
    Use.FREE: ("free", "t3"),
    Use.BLOCKED: ("cordon", "t3"),
    Use.UNKNOWN: ("unk", "unk"),
}


def sentence(card: Card, now: datetime) -> str:
    """``h100-02 GPU 2, H100 80GB HBM3: held but idle for 4 d 6 h, held by sandbox/notebook``."""
    name = f"{card.node} GPU {card.index}"
    model = f", {card.model}" if card.model else ""
    return f"{name}{model}: {'; '.join(_clauses(card, now))}"


def _clauses(card: Card, now: datetime) -> list[str]:
    clauses = [_use(card, now)]
    if card.cut == "mig":
        profiles = Counter(part.profile for part in card.parts if not part.gap)
        cut = ", ".join(f"{n} × {name}" for name, n in profiles.items()) or "nothing"
        taken = sum(bool(part.holders) for part in card.parts)
        clauses.append(f"cut by MIG into {cut}, {taken} of {sum(profiles.values())} held")
    elif card.slots:
        clauses.append(f"time-sliced, {card.slots.held} of {card.slots.total} slots held")
    elif card.holders:
        clauses.append("held by " + and_list(str(holder) for holder in card.holders))
    return [*clauses, *_readings(card)]


def _readings(card: Card) -> list[str]:
    """What the other modes of the map show, so that the name says all that can be seen."""
    found = []
    if card.memory_percent is not None:
        found.append(f"memory {card.memory_percent} %")
    if card.temperature_celsius is not None:
        found.append(f"{card.temperature_celsius} °C")
    return found


def _use(card: Card, now: datetime) -> str:
    return {
        Use.BUSY: f"{card.utilization_percent} % busy",
        Use.QUIET: f"held, {card.utilization_percent} % busy",
        Use.IDLE: f"held but idle{idle_for(card, now)}",
        Use.UNMEASURED: f"held, use not measurable ({card.reason})",
        Use.FAILED: f"failed: {(card.gpu and card.gpu.error) or card.reason}",
        Use.FREE: "free",
        Use.BLOCKED: f"not held, but not schedulable ({card.reason})",
        Use.UNKNOWN: f"unknown ({card.reason})",
    }[card.use]


def idle_for(card: Card, now: datetime) -> str:
    """``" for 4 d 6 h"``; empty when it is not known since when."""
    if card.gpu is None or card.gpu.idle_since is None:
        return ""
    return f" for {age((now - card.gpu.idle_since).total_seconds())}"


def _moment(at: datetime, now: datetime) -> str:
    """``14:02 UTC``; with the day where it was not today."""
    return f"{at:%H:%M} UTC" if at.date() == now.date() else f"{at:%d %b %H:%M} UTC"


def words(card: Card, now: datetime) -> str:
    """The few words at the head of a card on its node's page."""
    if card.use is Use.FAILED:
        return card.reason + (f" since {_moment(card.gpu.state_since, now)}" if card.gpu else "")
    if card.cut == "mig":
        return "MIG " + mig_layout(card)
    if card.slots:
        whole = f"{mig_layout(card)} × " if card.parts else ""
        return f"{whole}{count(card.slots.total, 'slot')}"
    if card.use is Use.IDLE:
        return "held, idle" + idle_for(card, now).removeprefix(" for")
    return {
        Use.BUSY: "busy",
        Use.QUIET: "held, quiet",
        Use.UNMEASURED: "held",
        Use.FREE: "free",
        Use.BLOCKED: "free, out of reach",
        Use.UNKNOWN: "unknown",
    }[card.use]


def mig_layout(card: Card) -> str:
    """``2g 2g 3g``, or ``7 × 1g`` when all are alike."""
    sizes = [part.profile.split(".")[0] for part in card.parts if not part.gap]
    if not sizes:
        return "on, no instances"
    if len(set(sizes)) == 1 and len(sizes) > 1:
        return f"{len(sizes)} × {sizes[0]}"
    return " ".join(sizes)
