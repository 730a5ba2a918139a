"""Telling a report that only brings new readings from one that changes what there is.

On a calm fleet nearly every report differs from the last one in its readings alone. Those are
stored many at a time (`collect.steady`); everything else goes the whole way, node by node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from agent.contract.report import Gpu, MigInstance, Report

_ENCODER = msgspec.msgpack.Encoder()


def standing(report: Report) -> str:
    """A digest of all that a report says but for its readings, processes and times.

    Two reports of equal digests have the same cards and instances in the same order, in the same
    states, with the same holders, and no XID between them.
    """
    about = (
        report.agent_version,
        report.agent_instance,
        report.state,
        report.driver_version,
        report.cuda_version,
        report.pods_error,
        report.xid_sequence,
        report.pods,
        [_card(gpu) for gpu in report.gpus],
    )
    return _digest(about)


def at_work(report: Report) -> str:
    """A digest of the processes on its cards."""
    lists = [(gpu.processes, gpu.unreadable_processes) for gpu in report.gpus]
    return _digest(lists)


def _digest(value: object) -> str:
    """ "" for what has no encoding, such as half of a surrogate pair: it equals nothing."""
    try:
        return hashlib.blake2b(_ENCODER.encode(value), digest_size=16).hexdigest()
    except (UnicodeEncodeError, OverflowError):
        return ""


def read_cards(report: Report) -> list[Gpu]:
    """The cards of which the report has a reading, in its order."""
    return [gpu for gpu in report.gpus if gpu.state == "ok"]


def read_instances(report: Report) -> Iterator[MigInstance]:
    """Their MIG devices, card by card."""
    for gpu in read_cards(report):
        yield from gpu.mig_instances


def _card(gpu: Gpu) -> tuple[object, ...]:
    return (
        gpu.index,
        gpu.uuid,
        gpu.state,
        gpu.error,
        gpu.name,
        gpu.serial,
        gpu.pci_bus_id,
        gpu.compute_capability,
        gpu.memory_kind,
        gpu.memory_total_bytes,
        gpu.power_limit_watts,
        gpu.ecc_uncorrectable_volatile,
        gpu.mig_mode_current,
        gpu.mig_mode_pending,
        gpu.field_errors,
        [
            (
                each.uuid,
                each.profile,
                each.gpu_instance_id,
                each.compute_instance_id,
                each.compute_slices,
                each.placement_start,
                each.placement_size,
                each.memory_total_bytes,
            )
            for each in gpu.mig_instances
        ],
    )
