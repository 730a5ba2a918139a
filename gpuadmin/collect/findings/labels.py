"""What labels say of a node's cards against what the agent reads (C11), and MIG changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from django.conf import settings

from gpuadmin.collect.findings.about import CRITICAL, NOTE, about
from gpuadmin.fleet.models import Gpu
from gpuadmin.fleet.services import FindingFact
from gpuadmin.planning.labels import (
    CHANGING,
    MIG_CONFIG,
    MIG_STATE,
    Hardware,
    contradictions,
    is_mig_invalid,
)
from gpuadmin.workloads.facts import NodeRecord

CODES = ("mig_invalid", "mig_change", "labels_contradict")
_AGAIN = (
    "The MIG manager does not try the same layout twice. Read its log, then delete its pod on the "
    "node: it applies the layout again when it starts."
)


def of_labels(record: NodeRecord, now: datetime) -> Iterator[FindingFact]:
    """Labels stay labels: models and counts are the agent's."""
    node, hardware = record.node, _hardware(record)
    if is_mig_invalid(node.labels):
        yield _mig_invalid(record, hardware)
    elif hardware and (told := contradictions(node.labels, hardware)):
        yield about(
            node,
            "labels_contradict",
            NOTE,
            f"{node.name} has labels that its hardware contradicts",
            f"{' '.join(told)} What we count is the hardware's. Who selects nodes by these labels "
            "may get something else.",
        )
    if told_of_change := _mig_change(record, now):
        yield about(node, "mig_change", CRITICAL, *told_of_change)


def _hardware(record: NodeRecord) -> Hardware | None:
    """None while the agent can't vouch for every card: a lost one may or may not be in labels."""
    if not record.agent_current or any(gpu.state != Gpu.State.OK for gpu in record.gpus):
        return None
    cut = [gpu for gpu in record.gpus if gpu.mig_mode_current]
    return Hardware(
        models=Counter(gpu.name for gpu in record.gpus),
        cut=len(cut),
        slices=Counter(each.profile for gpu in cut for each in gpu.instances.all()),
    )


def _mig_invalid(record: NodeRecord, hardware: Hardware | None) -> FindingFact:
    node = record.node
    state = node.labels.get(MIG_STATE, "")
    advice = f"In spite of mig.config.state {state}. " if state == "success" else ""
    if hardware and hardware.slices:
        cut = ", ".join(f"{n} × {profile}" for profile, n in sorted(hardware.slices.items()))
        advice += f"The cards are cut into {cut}. "
    advice += (
        "The strategy single wants every card cut, and into slices of one size. Set the strategy "
        "to mixed, or choose a layout with one profile."
    )
    return about(
        node,
        "mig_invalid",
        CRITICAL,
        f"{node.name} has a MIG layout that does not fit its strategy: nothing is schedulable",
        advice,
    )


def _mig_change(record: NodeRecord, now: datetime) -> tuple[str, str] | None:
    """Sentence and advice where a change failed, or has lasted too long (contracts.md 3.3)."""
    node = record.node
    state, wanted = node.labels.get(MIG_STATE, ""), node.labels.get(MIG_CONFIG, "")
    if state == "failed":
        return f"{node.name} failed to change its MIG layout to “{wanted}”", _AGAIN
    if state not in CHANGING or node.mig_state_since is None:
        return None
    if (now - node.mig_state_since).total_seconds() <= settings.MIG_STUCK_SECONDS:
        return None
    paused = sorted(k for k, v in node.labels.items() if v.startswith("paused-"))
    still = f" {', '.join(paused)}: still paused." if paused else ""
    return (
        f"{node.name} is stuck in a change of its MIG layout to “{wanted}”",
        f"It has been {state} since {node.mig_state_since:%d %b %H:%M} UTC at the latest.{still} "
        f"Meanwhile no GPU may be advertised. {_AGAIN}",
    )
