"""What is known of one node, and the account of it: plain values.

Unknown is ``None``. Cards, slices and slots are counted each in their own unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from gpuadmin.planning.resources import Unit

MAX_CARDS = 512  # on one node: more is a data fault (16 cards of 7 slices each are 112)
CardState = Literal["ok", "lost", "missing", "error"]


class Use(StrEnum):
    """What a card is doing; each card is in exactly one, so that the parts add up to the whole."""

    BUSY = "busy"  # held, measured, at or above the busy threshold
    QUIET = "quiet"  # held, measured, below it, but not idle for long
    IDLE = "idle"  # held, measured, and unused for the idle time
    UNMEASURED = "unmeasured"  # held; use can't be measured (MIG mode, no agent)
    FAILED = "failed"  # lost or missing
    FREE = "free"  # a pod could have it now
    BLOCKED = "blocked"  # not held, but nothing can be scheduled to it
    UNKNOWN = "unknown"  # not known whether it is held


class Note(StrEnum):
    """Why a resource row is not what it seems."""

    STALE = "stale"  # advertised without hardware behind it (C02)
    FAULT = "fault"  # a value outside 0..capacity: a data fault (C01)


@dataclass(frozen=True)
class Policy:
    """Thresholds, from the settings."""

    busy_percent: int = 10
    idle_seconds: float = 7200
    tolerated_taints: frozenset[str] = frozenset({"nvidia.com/gpu"})


@dataclass(frozen=True)
class TaintFact:
    key: str
    effect: str


@dataclass(frozen=True)
class PodFact:
    """A pod bound to this node that still counts (phase not Succeeded or Failed)."""

    namespace: str
    name: str
    requests: Mapping[str, int]


@dataclass(frozen=True)
class HeldFact:
    """One device that a container holds (PodResources)."""

    namespace: str
    pod: str
    resource: str
    gpu_uuid: str | None = None
    mig_uuid: str | None = None
    slot: int | None = None


@dataclass(frozen=True)
class InstanceFact:
    uuid: str
    profile: str


@dataclass(frozen=True)
class CardFact:
    """A card as the agent last reported it. ``current``: the last report had a reading of it."""

    uuid: str
    index: int
    state: CardState = "ok"
    current: bool = True
    utilization_percent: int | None = None
    idle_for_seconds: float | None = None
    mig: bool = False
    instances: tuple[InstanceFact, ...] = ()


@dataclass(frozen=True)
class NodeFacts:
    """All that is known of one node. ``pods`` is None when we may not list pods (C38 t4);
    ``cards`` is None when no agent ever reported; ``held`` is None when the kubelet doesn't tell.
    """

    name: str
    ready: bool | None = True
    unschedulable: bool = False
    taints: tuple[TaintFact, ...] = ()
    capacity: Mapping[str, int | None] = field(default_factory=dict)
    allocatable: Mapping[str, int | None] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    pods: tuple[PodFact, ...] | None = ()
    cards: tuple[CardFact, ...] | None = None
    held: tuple[HeldFact, ...] | None = None


@dataclass(frozen=True)
class ResourceRow:
    """One resource name on one node, in its own ``unit``.

    ``free`` = max(0, allocatable − requested). ``free_now`` takes away what can't be scheduled to:
    ``unavailable`` of it, for ``why``. ``physical`` is what NVML has behind the name.
    """

    name: str
    unit: Unit
    physical: int | None
    capacity: int | None
    allocatable: int | None
    requested: int | None
    free: int | None
    free_now: int | None
    over_committed: int | None
    unavailable: int | None
    why: str = ""
    note: Note | None = None

    @property
    def unhealthy(self) -> int | None:
        """What the plugin withdrew: capacity − allocatable (contracts.md 1.9)."""
        if self.capacity is None or self.allocatable is None:
            return None
        return max(0, self.capacity - self.allocatable)


@dataclass(frozen=True)
class CardAccount:
    """One card's part in the partition. ``reason`` says why it is blocked or unmeasured;
    ``observed``: the agent's last answer told of it.
    """

    uuid: str | None
    index: int
    use: Use
    held: bool | None
    reason: str = ""
    observed: bool = False


@dataclass(frozen=True)
class NodeAccount:
    """``cards`` has one entry per owned card; the rows are sorted by name."""

    rows: tuple[ResourceRow, ...]
    cards: tuple[CardAccount, ...]
    closed: str  # why nothing new can come here; "" when open

    @property
    def owned(self) -> int:
        return len(self.cards)

    @property
    def uses(self) -> Counter[Use]:
        return Counter(card.use for card in self.cards)

    @property
    def working(self) -> int:
        """Cards that are observed now and have not failed: a silent agent vouches for none."""
        return sum(card.observed and card.use is not Use.FAILED for card in self.cards)

    @property
    def not_observed(self) -> int:
        """Cards of which nobody tells now, and that are not known to have failed."""
        return sum(not card.observed and card.use is not Use.FAILED for card in self.cards)

    @property
    def allocated(self) -> int | None:
        """Cards of which any part is held; None when it is not known of some."""
        if any(card.held is None for card in self.cards):
            return None
        return sum(bool(card.held) for card in self.cards)
