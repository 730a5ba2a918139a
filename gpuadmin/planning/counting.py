"""The one account of a node's accelerators. Pages, API, findings and history use only this.

Rules: design.md section 1 and 9 "Counting"; cases C01, C02, C08, C09, C11, C13.
"""

from __future__ import annotations

from gpuadmin.planning.cards import cards_of_agent, cards_of_api
from gpuadmin.planning.facts import MAX_CARDS, NodeAccount, NodeFacts, Note, Policy, ResourceRow
from gpuadmin.planning.resources import (
    MAX_REPLICAS,
    ResourceName,
    Unit,
    profile_in_name,
    recognise,
    replicas,
)


def account(facts: NodeFacts, policy: Policy) -> NodeAccount:
    """Count one node. Pure; never negative, never invented."""
    closed = closed_by(facts, policy)
    names = sorted(set(facts.capacity) | set(facts.allocatable) | _requested_names(facts))
    rows = tuple(_row(facts, resource, closed) for name in names if (resource := recognise(name)))
    cards = cards_of_agent(facts, rows, closed, policy)
    return NodeAccount(rows, cards if cards is not None else cards_of_api(facts, rows), closed)


def closed_by(facts: NodeFacts, policy: Policy) -> str:
    """Why no GPU pod can be scheduled here; "" when one can (C13). PreferNoSchedule never does."""
    if facts.ready is not True:
        return "not ready"
    if facts.unschedulable:
        return "cordoned"
    for taint in facts.taints:
        if taint.effect != "PreferNoSchedule" and taint.key not in policy.tolerated_taints:
            return f"tainted {taint.key}:{taint.effect}"
    return ""


def _requested_names(facts: NodeFacts) -> set[str]:
    return {name for pod in facts.pods or () for name in pod.requests}


def _row(facts: NodeFacts, resource: ResourceName, closed: str) -> ResourceRow:
    capacity, allocatable = facts.capacity.get(resource.name), facts.allocatable.get(resource.name)
    requested = None
    if facts.pods is not None:
        requested = sum(pod.requests.get(resource.name, 0) for pod in facts.pods)
    physical = _physical(facts, resource)
    stale = physical == 0 and facts.cards is not None and (allocatable or 0) > 0
    fault = _is_fault(facts, resource, capacity, allocatable)
    note = Note.FAULT if fault else Note.STALE if stale else None
    free = over = free_now = unavailable = None
    if allocatable is not None and requested is not None:
        usable = 0 if note else max(0, allocatable)
        free, over = max(0, usable - requested), max(0, requested - max(0, allocatable))
        free_now = 0 if closed else free
    if allocatable is not None:
        unavailable = _unavailable(facts, allocatable, free, closed, note)
    unit: Unit = (
        "slot"
        if resource.unit == "card" and replicas(facts.labels, resource) > 1
        else resource.unit
    )
    return ResourceRow(
        name=resource.name,
        unit=unit,
        physical=physical,
        capacity=capacity,
        allocatable=allocatable,
        requested=requested,
        free=free,
        free_now=free_now,
        over_committed=over,
        unavailable=unavailable,
        why="stale name" if note is Note.STALE else "data fault" if note else closed,
        note=note,
    )


def _is_fault(
    facts: NodeFacts, resource: ResourceName, capacity: int | None, allocatable: int | None
) -> bool:
    """A value outside 0..capacity (C01), none at all, or more devices than a machine can have."""
    most = MAX_CARDS * replicas(facts.labels, resource) * (MAX_REPLICAS if resource.renamed else 1)
    if resource.nvidia and (capacity or 0) > most:
        return True
    if any(
        amounts.get(resource.name, 0) is None for amounts in (facts.capacity, facts.allocatable)
    ):
        return True
    return any(
        value is not None and (value < 0 or (capacity is not None and value > max(capacity, 0)))
        for value in (capacity, allocatable)
    )


def _unavailable(
    facts: NodeFacts, allocatable: int, free: int | None, closed: str, note: Note | None
) -> int | None:
    """Not ready or stale: all of it. Cordoned or tainted: what would be free (C13)."""
    if note or (closed and facts.ready is not True):
        return max(0, allocatable)
    return free if closed else 0


def _physical(facts: NodeFacts, resource: ResourceName) -> int | None:
    """Devices that NVML has behind this name; None when no agent tells, or the name isn't ours."""
    if facts.cards is None or not resource.nvidia:
        return None
    present = [card for card in facts.cards if card.state != "missing"]
    if resource.profile:
        return sum(
            profile_in_name(instance.profile) == resource.profile
            for card in present
            for instance in card.instances
        )
    whole = sum(not card.mig for card in present)
    if facts.labels.get("nvidia.com/mig.strategy") == "single" and whole == 0:
        return sum(len(card.instances) for card in present)
    return whole
