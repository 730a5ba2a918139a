"""What the pods on a node make its cards do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from simulator import marks
from simulator.fleet.inventory import NodeSpec, made_up_id
from simulator.hardware import Card, Hardware, SimProcess
from simulator.nodes.client import Value
from simulator.nodes.plugin import Device

IDLE_CELSIUS = 31
CELSIUS_PER_PERCENT = 0.41
CUDA_CONTEXT_BYTES = 450 * 1024 * 1024  # used of a held card when the pod says nothing


@dataclass(frozen=True)
class Share:
    """One device held by one pod, with the load that the pod puts on it (percent)."""

    pod_uid: str
    device: Device
    load: int
    memory: int | None


def shares(pod: Value, devices: Iterable[Device]) -> list[Share]:
    """A pod's annotations spread over its devices; a number that can't be read is none."""
    loads = _numbers(marks.mark(pod, marks.LOAD))
    memories = _numbers(marks.mark(pod, marks.MEMORY))
    return [
        Share(
            pod["metadata"]["uid"],
            device,
            loads[min(number, len(loads) - 1)] if loads else 0,
            memories[min(number, len(memories) - 1)] if memories else None,
        )
        for number, device in enumerate(devices)
    ]


def put_on(spec: NodeSpec, hardware: Hardware, all_shares: list[Share]) -> Hardware:
    """The node's cards at rest with these loads on them."""
    by_card: dict[int, list[Share]] = defaultdict(list)
    for share in all_shares:
        by_card[share.device.card].append(share)
    cards = [_card(spec, card, by_card[card.index]) for card in hardware.cards]
    return msgspec.structs.replace(hardware, cards=cards)


def _card(spec: NodeSpec, card: Card, held: list[Share]) -> Card:
    load = min(100, sum(share.load for share in held))
    if card.mig_current:
        load = _mean_over_slices(card, held)
    instances = [
        msgspec.structs.replace(
            each,
            memory_used_bytes=_used(
                each.memory_total_bytes, [s for s in held if s.device.base == each.uuid]
            ),
        )
        for each in card.instances
    ]
    used = _used(card.memory_total_bytes, held)
    if card.mig_current:
        used = sum(each.memory_used_bytes for each in instances)
    idle = spec.model.idle_watts
    return msgspec.structs.replace(
        card,
        utilization_percent=load,
        wobble_percent=3 if 3 < load < 97 else 0,
        memory_used_bytes=used,
        temperature_celsius=round(IDLE_CELSIUS + card.index % 3 + CELSIUS_PER_PERCENT * load),
        power_watts=round(idle + (card.power_limit_watts - idle) * load / 105),
        instances=instances,
        processes=_processes(card, held),
    )


def _mean_over_slices(card: Card, held: list[Share]) -> int:
    slices = {each.uuid: each.compute_slices for each in card.instances}
    return sum(share.load * slices.get(share.device.base, 0) for share in held) // 7


def _used(total_bytes: int, held: list[Share]) -> int:
    return min(total_bytes, sum(_used_by(total_bytes, share) for share in held))


def _used_by(total_bytes: int, share: Share) -> int:
    if share.memory is None:
        return min(total_bytes, CUDA_CONTEXT_BYTES)
    return total_bytes * share.memory // 100


def _processes(card: Card, held: list[Share]) -> list[SimProcess]:
    instances = {each.uuid: each for each in card.instances}
    found: list[SimProcess] = []
    for share in held:
        instance = instances.get(share.device.base)
        total = instance.memory_total_bytes if instance else card.memory_total_bytes
        found.append(
            SimProcess(
                pid=4000 + made_up_id(share.pod_uid).int % 90000,
                memory_used_bytes=_used_by(total, share) if total else CUDA_CONTEXT_BYTES,
                gpu_instance_id=instance.gpu_instance_id if instance else None,
                compute_instance_id=instance.compute_instance_id if instance else None,
            )
        )
    return found


def _numbers(text: str | None) -> list[int]:
    parts = (text or "").split(",")
    return [min(100, int(part)) for part in parts if part.strip().isdigit()]
