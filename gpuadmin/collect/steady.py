"""Storing the reports of a calm fleet many at a time.

A report is steady when it says what the node's last whole one said, but for readings, processes and
times (`planning.steady`). Such reports share one transaction; whatever else comes, or turns out to
have changed meanwhile, goes the whole way node by node (`collect.reports.take`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from django.conf import settings
from django.db import transaction

from agent.contract.report import Gpu, Report
from gpuadmin.collect.reports import held_cards
from gpuadmin.collect.xids import SLACK, listens_since
from gpuadmin.fleet import steady as fleet
from gpuadmin.fleet.models import AgentState
from gpuadmin.fleet.steady import AgentRow, CardRow, Standing
from gpuadmin.ledger.services import keep_readings
from gpuadmin.planning.reports import impossible, reading, wrong_identity
from gpuadmin.planning.steady import at_work, read_cards, read_instances, standing


@dataclass(frozen=True)
class Came:
    """A steady report, what it stands on, and when it came by the server's clock."""

    report: Report
    known: Standing
    processes_digest: str
    at: datetime


def steady(state: AgentState, report: Report, at: datetime) -> Came | None:
    """The report as a steady one; None where it has to go the whole way. Nothing is believed here
    that `collect.reports` would not believe."""
    if state.status != AgentState.Status.OK or not state.digest or report.state != "ok":
        return None
    if state.reported_at is None or listens_since(report, at) > state.reported_at + SLACK:
        return None  # nobody listened for XIDs for a while
    digest = standing(report)
    if digest != state.digest or impossible(report) or _stranger(state, report):
        return None
    known = Standing(
        state.node_id, digest, state.processes_digest, state.card_ids, state.instance_ids
    )
    return Came(report, known, at_work(report), at)


def _stranger(state: AgentState, report: Report) -> str:
    node = state.node
    return wrong_identity(
        report,
        node_name=node.name,
        pod_uid=state.pod_uid,
        boot_id=node.info.get("bootID"),
        machine_id=node.info.get("machineID"),
    )


@transaction.atomic
def store(came: Sequence[Came]) -> set[int]:
    """Store them all. Returns the nodes whose report was stored."""
    stored = fleet.still_standing(
        [
            AgentRow(
                one.known.node_id,
                one.at,
                one.known.digest,
                one.processes_digest,
                one.report.sent_at - one.at.timestamp(),
            )
            for one in came
        ]
    )
    kept = [one for one in came if one.known.node_id in stored]
    fleet.store_latest(row for one in kept for row in _cards(one))
    keep_readings(fleet.CAME)
    fleet.store_instance_memory([pair for one in kept for pair in _instances(one)])
    fleet.store_processes(
        [
            row
            for one in kept
            if one.processes_digest != one.known.processes_digest
            for row in _processes(one)
        ]
    )
    return stored


def _cards(one: Came) -> Iterator[CardRow]:
    held = held_cards(one.report)
    for gpu_id, gpu in zip(one.known.card_ids, read_cards(one.report), strict=True):
        used = reading(gpu, "utilization_percent")
        yield CardRow(
            gpu_id=gpu_id,
            at=one.at,
            memory_used_bytes=_whole(reading(gpu, "memory_used_bytes")),
            utilization_percent=_whole(used),
            temperature_celsius=_whole(reading(gpu, "temperature_celsius")),
            power_watts=reading(gpu, "power_watts"),
            idle=_is_idle(gpu, held, used),
        )


def _is_idle(gpu: Gpu, held: set[str] | None, used: float | None) -> bool | None:
    """As `fleet.cards` judges it: one reading that is missing says nothing."""
    if gpu.mig_mode_current or (held is not None and gpu.uuid not in held):
        return False
    if held is None or used is None:
        return None
    return bool(used < settings.IDLE_PERCENT)


def _instances(one: Came) -> Iterator[tuple[int, int | None]]:
    for pk, instance in zip(one.known.instance_ids, read_instances(one.report), strict=True):
        yield pk, _whole(reading(instance, "memory_used_bytes"))


def _processes(one: Came) -> Iterator[tuple[int, str | None, int]]:
    for gpu_id, gpu in zip(one.known.card_ids, read_cards(one.report), strict=True):
        told = gpu.processes
        text = None if told is None else msgspec.json.encode(told).decode()
        yield gpu_id, text, gpu.unreadable_processes


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
