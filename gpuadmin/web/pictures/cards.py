"""One drawing of a card everywhere: map cell, bar in a table, and block on the node's page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuadmin.fleet.models import Gpu, MigInstance
from gpuadmin.planning.facts import CardAccount, Use
from gpuadmin.planning.resources import ResourceName, profile_in_name, replicas
from gpuadmin.web.pictures.states import agent_reason
from gpuadmin.web.pictures.text import full_model, short_model
from gpuadmin.workloads.facts import NodeRecord
from gpuadmin.workloads.models import PodDevice

GRID = 8  # memory slices of the large cards; an A30 has 4 and is drawn at double width
TONES = 8  # namespaces with a colour of their own


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
class Card:
    """A card as it is cut, with its latest reading. What is missing is None; ``dark`` says why."""

    node: str
    index: int
    use: Use
    reason: str
    known: bool  # NVML has told of it; else it is only a count of the API
    gpu: Gpu | None = None
    model: str = ""
    holders: tuple[Holder, ...] = ()
    parts: tuple[Part, ...] = ()
    slots: tuple[Slot, ...] = ()
    dark: str = ""
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
    gpus = {gpu.uuid: gpu for gpu in record.gpus}
    current = {card.uuid: card.current for card in record.facts.cards or ()}
    held = _holders(record.devices, colours)
    return [
        _card(record, account, gpus.get(account.uuid or ""), current, held)
        for account in record.account.cards
    ]


Held = Mapping[str, list[tuple[int | None, Holder]]]


def _holders(devices: Iterable[PodDevice], colours: Tones) -> Held:
    """Slot and holder by the UUID of the card or MIG device, each pod once per slot."""
    found: dict[str, list[tuple[int | None, Holder]]] = defaultdict(list)
    for device in devices:
        holder = Holder(device.namespace, device.pod_name, colours[device.namespace])
        entry = (device.slot, holder)
        uuid = device.mig_uuid or device.gpu_uuid
        if entry not in found[uuid]:
            found[uuid].append(entry)
    return found


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
        )
    parts = _parts(gpu, held)
    own = held.get(gpu.uuid, [])
    fresh = current.get(gpu.uuid, False)
    return Card(
        node=record.node.name,
        index=gpu.index,
        use=account.use,
        reason=account.reason,
        known=True,
        gpu=gpu,
        model=full_model(gpu.name),
        holders=_unique([h for _, h in own], [h for part in parts for h in part.holders]),
        parts=parts,
        slots=_slots(record, gpu, parts, held),
        dark="" if fresh else _dark(record, gpu),
        memory_percent=percent(gpu.memory_used_bytes, gpu.memory_total_bytes) if fresh else None,
        utilization_percent=gpu.utilization_percent if fresh else None,
        temperature_celsius=gpu.temperature_celsius if fresh else None,
        power_watts=gpu.power_watts if fresh else None,
        memory_used_bytes=gpu.memory_used_bytes if fresh else None,
    )


def _dark(record: NodeRecord, gpu: Gpu) -> str:
    since = (
        f"no reading since {gpu.read_at:%d %b %H:%M} UTC"
        if gpu.read_at
        else f"never read since it was first seen {gpu.first_seen:%d %b %H:%M} UTC"
    )
    why = (gpu.error or gpu.state) if gpu.state != Gpu.State.OK else agent_reason(record)
    return f"{why.rstrip('.')}; {since}"


def _unique(*groups: Iterable[Holder]) -> tuple[Holder, ...]:
    return tuple(dict.fromkeys(holder for group in groups for holder in group))


def percent(part: int | None, whole: int | None) -> int | None:
    """A share in whole percent; None when either is unknown."""
    if part is None or not whole:
        return None
    return min(100, round(100 * part / whole))


def _slots(record: NodeRecord, gpu: Gpu, parts: tuple[Part, ...], held: Held) -> tuple[Slot, ...]:
    """As many as the plugin shares a card into, and more where more are held (over-committed).

    A card that is one MIG instance as a whole may be shared as well; smaller instances that are
    shared name their holders instead.
    """
    resource, uuid = ResourceName("nvidia.com/gpu", "card"), gpu.uuid
    if len(parts) == 1 and not parts[0].gap:
        profile = profile_in_name(parts[0].profile)
        resource = ResourceName(f"nvidia.com/mig-{profile}", "slice", profile)
        uuid = gpu.instances.all()[0].uuid
    elif parts:
        return ()
    shared = replicas(record.node.labels, resource)
    by_number = {slot: holder for slot, holder in held.get(uuid, []) if slot is not None}
    if shared == 1 and not by_number:
        return ()
    total = max([shared, *(number + 1 for number in by_number)])
    return tuple(Slot(n + 1, by_number.get(n)) for n in range(total))


def _parts(gpu: Gpu, held: Held) -> tuple[Part, ...]:
    """The instances to scale, with the gaps between them, in the order of their places."""
    instances = list(gpu.instances.all())
    if not gpu.mig_mode_current:
        return ()
    scale = 2 if short_model(gpu.name) == "A30" else 1
    found: list[Part] = []
    place = 0
    for instance in sorted(instances, key=lambda i: (i.placement_start or 0, i.uuid)):
        start = place if instance.placement_start is None else instance.placement_start * scale
        if start > place:
            found.append(Part(place, start - place))
        part = _instance(instance, start, scale, held)
        if start < place or start + part.size > GRID:
            continue  # a place that cannot be: NVML never reports it, and a drawing must not lie
        found.append(part)
        place = start + part.size
    if place < GRID:
        found.append(Part(place, GRID - place))
    return tuple(found)


def _instance(instance: MigInstance, start: int, scale: int, held: Held) -> Part:
    return Part(
        start=start,
        size=(instance.placement_size or 1) * scale,
        profile=instance.profile or "MIG",
        holders=_unique([holder for _, holder in held.get(instance.uuid, [])]),
        memory_percent=percent(instance.memory_used_bytes, instance.memory_total_bytes),
    )
