"""The device plugin: which devices a node advertises, and the kubelet's choice among them.

Names, ids and health follow contracts.md 1.5, 1.6, 1.9 and 1.10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from simulator.hardware import Card, Hardware

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Device:
    """One advertised device. ``base`` is the id without the slot: the card or the MIG device."""

    id: str
    resource: str
    card: int
    base: str
    healthy: bool


def devices(hardware: Hardware, replicas: dict[str, int], sick: set[int]) -> list[Device]:
    """All devices of a node. ``sick``: indexes of cards that the plugin marked unhealthy."""
    found: list[Device] = []
    for card in hardware.cards:
        if not card.absent:
            found += _devices_of(card, replicas, card.index in sick)
    return found


def _devices_of(card: Card, replicas: dict[str, int], sick: bool) -> list[Device]:
    """A sick card loses one device: the plugin remembers one per parent (contracts.md 1.9)."""
    if card.mig_current:
        bases = [(f"nvidia.com/mig-{each.profile}", each.uuid) for each in card.instances]
    else:
        bases = [(GPU, card.uuid)]
    found: list[tuple[str, str, str]] = []
    for resource, base in bases:
        slots = replicas.get(resource, 1)
        if slots == 1:
            found.append((base, resource, base))
        else:
            found += [(f"{base}::{slot}", f"{resource}.shared", base) for slot in range(slots)]
    last = len(found) - 1
    return [
        Device(id_, resource, card.index, base, healthy=not (sick and number == last))
        for number, (id_, resource, base) in enumerate(found)
    ]


def base_of(device_id: str) -> str:
    """The id without its slot (contracts.md 1.6)."""
    return device_id.partition("::")[0]


def device_of(hardware: Hardware, resource: str, device_id: str) -> Device:
    """A device by its id, advertised still or not. Raises ``StopIteration`` for a foreign id."""
    base = base_of(device_id)
    card = next(
        card
        for card in hardware.cards
        if base == card.uuid or any(base == each.uuid for each in card.instances)
    )
    return Device(device_id, resource, card.index, base, healthy=True)


def advertised(found: list[Device], known: Iterable[str]) -> tuple[dict[str, int], dict[str, int]]:
    """(capacity, allocatable) by resource; a name once advertised stays, at 0 (contracts.md 1.10).

    Unhealthy devices count in capacity only.
    """
    names = {*known, *(device.resource for device in found)}
    capacity = Counter(device.resource for device in found)
    allocatable = Counter(device.resource for device in found if device.healthy)
    ordered = sorted(names)
    return {name: capacity[name] for name in ordered}, {name: allocatable[name] for name in ordered}


def choose(
    found: list[Device], held: set[str], resource: str, count: int, cards: list[int]
) -> list[Device] | None:
    """``count`` free healthy devices, those of ``cards`` only when given; None when too few.

    Slots are spread: the plugin prefers the card or slice with the fewest slots given away.
    """
    taken = Counter(base_of(id_) for id_ in held)
    free = [
        device
        for device in found
        if device.resource == resource
        and device.healthy
        and device.id not in held
        and (not cards or device.card in cards)
    ]
    chosen: list[Device] = []
    while free and len(chosen) < count:
        best = min(free, key=lambda device: taken[device.base])
        free.remove(best)
        taken[best.base] += 1
        chosen.append(best)
    return chosen if len(chosen) == count else None
