"""How a card is cut, and who holds what of it: MIG instances to scale, and time-slices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpuadmin.fleet.models import Gpu, MigInstance
from gpuadmin.planning.resources import ResourceName, profile_in_name, replicas
from gpuadmin.web.pictures.text import percent, short_model
from gpuadmin.workloads.facts import NodeRecord
from gpuadmin.workloads.models import PodDevice

GRID = 8  # memory slices of the large cards; an A30 has 4 and is drawn at double width
MOST_SLOTS = 16  # drawn of one card


@dataclass(frozen=True)
class Holder:
    """A pod that holds a card or a part of it. ``tone`` 1…8 is the namespace's colour, 0 grey."""

    namespace: str
    pod: str
    tone: int

    @property
    def letters(self) -> str:
        return self.namespace[:2]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod}"


@dataclass(frozen=True)
class Part:
    """A stretch of a card: a MIG instance (``profile``) or a gap that no instance covers.

    ``start`` and ``size`` are memory slices on the grid of eight.
    """

    start: int
    size: int
    profile: str = ""
    holders: tuple[Holder, ...] = ()
    memory_percent: int | None = None

    @property
    def gap(self) -> bool:
        return not self.profile

    @property
    def row(self) -> int:
        return self.start + 1


@dataclass(frozen=True)
class Slot:
    """One time-slice, counted from 1."""

    number: int
    holder: Holder | None


@dataclass(frozen=True)
class Slots:
    """The time-slices of a card. ``drawn`` are at most 16 of the ``total``, held before free."""

    drawn: tuple[Slot, ...]
    total: int
    held: int

    @property
    def more(self) -> int:
        return self.total - len(self.drawn)


Held = Mapping[str, list[tuple[int | None, Holder]]]


def holders_of(devices: Iterable[PodDevice], colours: Mapping[str, int]) -> Held:
    """Slot and holder by the UUID of the card or MIG device, each pod once per slot."""
    found: dict[str, list[tuple[int | None, Holder]]] = defaultdict(list)
    for device in devices:
        holder = Holder(device.namespace, device.pod_name, colours.get(device.namespace, 0))
        entry = (device.slot, holder)
        uuid = device.mig_uuid or device.gpu_uuid
        if entry not in found[uuid]:
            found[uuid].append(entry)
    return found


def unique(*groups: Iterable[Holder]) -> tuple[Holder, ...]:
    """Each holder once, in the order of their coming."""
    return tuple(dict.fromkeys(holder for group in groups for holder in group))


def parts_of(gpu: Gpu, held: Held, *, fresh: bool) -> tuple[Part, ...]:
    """The instances to scale, with the gaps between them, in the order of their places. What they
    use is told only by a fresh reading."""
    if not gpu.mig_mode_current:
        return ()
    instances = list(gpu.instances.all())
    scale = 2 if short_model(gpu.name) == "A30" else 1
    found: list[Part] = []
    place = 0
    for instance in sorted(instances, key=lambda i: (i.placement_start or 0, i.uuid)):
        start = place if instance.placement_start is None else instance.placement_start * scale
        if start > place:
            found.append(Part(place, start - place))
        part = _instance(instance, start, scale, held, fresh)
        if start < place or start + part.size > GRID:
            continue  # a place that cannot be: NVML never reports it, and a drawing must not lie
        found.append(part)
        place = start + part.size
    if place < GRID:
        found.append(Part(place, GRID - place))
    return tuple(found)


def _instance(instance: MigInstance, start: int, scale: int, held: Held, fresh: bool) -> Part:
    used = percent(instance.memory_used_bytes, instance.memory_total_bytes)
    return Part(
        start=start,
        size=(instance.placement_size or 1) * scale,
        profile=instance.profile or "MIG",
        holders=unique([holder for _, holder in held.get(instance.uuid, [])]),
        memory_percent=used if fresh else None,
    )


def slots_of(record: NodeRecord, gpu: Gpu, parts: tuple[Part, ...], held: Held) -> Slots | None:
    """As many as the plugin shares a card into, and more where more are held (over-committed).

    A card that is one MIG instance as a whole may be shared as well; smaller instances that are
    shared name their holders instead. None: the card is not shared.
    """
    resource, uuid = ResourceName("nvidia.com/gpu", "card"), gpu.uuid
    if len(parts) == 1 and not parts[0].gap:
        profile = profile_in_name(parts[0].profile)
        resource = ResourceName(f"nvidia.com/mig-{profile}", "slice", profile)
        uuid = gpu.instances.all()[0].uuid
    elif parts:
        return None
    shared = replicas(record.node.labels, resource)
    by_number = {slot: holder for slot, holder in held.get(uuid, []) if slot is not None}
    if shared == 1 and not by_number:
        return None
    total = max([shared, *(number + 1 for number in by_number)])
    return Slots(tuple(_drawn(by_number, total)), total, len(by_number))


def _drawn(by_number: Mapping[int, Holder], total: int) -> Iterator[Slot]:
    """A count may be in thousands, by a label or by a lie: all of it is told, not drawn."""
    held = sorted(by_number)[:MOST_SLOTS]
    first = range(min(total, MOST_SLOTS + len(held)))
    free = [number for number in first if number not in by_number]
    for number in sorted([*held, *free[: MOST_SLOTS - len(held)]]):
        yield Slot(number + 1, by_number.get(number))
