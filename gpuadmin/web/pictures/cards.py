"""One drawing of a card everywhere: map cell, bar in a table, and block on the node's page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gpuadmin.fleet.models import Gpu
from gpuadmin.planning.facts import CardAccount, Use
from gpuadmin.web.pictures.cuts import (
    Held,
    Holder,
    Part,
    Slots,
    holders_of,
    parts_of,
    slots_of,
    unique,
)
from gpuadmin.web.pictures.states import USE_WORDS, agent_reason, agent_words
from gpuadmin.web.pictures.text import full_model, percent
from gpuadmin.workloads.facts import NodeRecord

TONES = 8  # namespaces with a colour of their own


@dataclass(frozen=True)
class Card:
    """A card as it is cut, with its latest reading. What is missing is None; ``dark`` says why,
    and ``unread`` in a few words."""

    node: str
    index: int
    use: Use
    reason: str
    known: bool  # NVML has told of it; else it is only a count of the API
    gpu: Gpu | None = None
    model: str = ""
    holders: tuple[Holder, ...] = ()
    parts: tuple[Part, ...] = ()
    slots: Slots | None = None
    dark: str = ""
    unread: str = ""
    memory_percent: int | None = None
    utilization_percent: int | None = None
    temperature_celsius: int | None = None
    power_watts: float | None = None
    memory_used_bytes: int | None = None

    @property
    def cut(self) -> str:
        """``mig``, ``slots``, ``whole`` or ``unknown``: how it is drawn."""
        if not self.known:
            return "unknown"
        return "slots" if self.slots else "mig" if self.parts else "whole"


@dataclass(frozen=True)
class Tones:
    """Colours for the eight namespaces that hold most, in the order of their names, so that a
    colour does not jump when two of them change places."""

    of: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, namespace: str) -> int:
        return self.of.get(namespace, 0)


def tones(records: Iterable[NodeRecord]) -> Tones:
    """Over all records of a page."""
    held = Counter(device.namespace for record in records for device in record.devices)
    largest = sorted(held, key=lambda name: (-held[name], name))[:TONES]
    return Tones({name: place for place, name in enumerate(sorted(largest), start=1)})


def cards(record: NodeRecord, colours: Tones) -> list[Card]:
    """Every owned card of a node, by index."""
    uses = record.account.uses
    if len(uses) > 1 and all(card.uuid is None for card in record.account.cards):
        return [_one_of(record, account, uses) for account in record.account.cards]
    gpus = {gpu.uuid: gpu for gpu in record.gpus}
    current = {card.uuid: card.current for card in record.facts.cards or ()}
    held = holders_of(record.devices, colours.of)
    return [
        _card(record, account, gpus.get(account.uuid or ""), current, held)
        for account in record.account.cards
    ]


def _one_of(record: NodeRecord, account: CardAccount, uses: Counter[Use]) -> Card:
    """A card of which only the node's counts are known: 3 of 4 are held, and nobody knows which."""
    words = ", ".join(f"{n} {USE_WORDS[use]}" for use, n in sorted(uses.items()))
    which = f"of {record.account.owned} cards: {words}; only an agent can tell which"
    unknown = replace(account, use=Use.UNKNOWN, held=None, reason=which)
    return _card(record, unknown, None, {}, {})


def _card(
    record: NodeRecord,
    account: CardAccount,
    gpu: Gpu | None,
    current: Mapping[str, bool],
    held: Held,
) -> Card:
    if gpu is None:
        product = record.node.labels.get("nvidia.com/gpu.product", "")
        return Card(
            node=record.node.name,
            index=account.index,
            use=account.use,
            reason=account.reason,
            known=False,
            model=full_model(product),
            dark=agent_reason(record),
            unread=agent_words(record).lower(),
        )
    fresh = current.get(gpu.uuid, False)
    parts = parts_of(gpu, held, fresh=fresh)
    own = held.get(gpu.uuid, [])
    return Card(
        node=record.node.name,
        index=gpu.index,
        use=account.use,
        reason=account.reason,
        known=True,
        gpu=gpu,
        model=full_model(gpu.name),
        holders=unique([h for _, h in own], [h for part in parts for h in part.holders]),
        parts=parts,
        slots=slots_of(record, gpu, parts, held),
        dark="" if fresh else f"{_why(record, gpu)}; {_unread(gpu)}",
        unread="" if fresh else _unread(gpu),
        memory_percent=percent(gpu.memory_used_bytes, gpu.memory_total_bytes) if fresh else None,
        utilization_percent=gpu.utilization_percent if fresh else None,
        temperature_celsius=gpu.temperature_celsius if fresh else None,
        power_watts=gpu.power_watts if fresh else None,
        memory_used_bytes=gpu.memory_used_bytes if fresh else None,
    )


def _unread(gpu: Gpu) -> str:
    if gpu.read_at is None:
        return f"never read since it was first seen {gpu.first_seen:%d %b %H:%M} UTC"
    return f"no reading since {gpu.read_at:%d %b %H:%M} UTC"


def _why(record: NodeRecord, gpu: Gpu) -> str:
    why = (gpu.error or gpu.state) if gpu.state != Gpu.State.OK else agent_reason(record)
    return why.rstrip(".")
