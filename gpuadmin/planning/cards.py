"""The partition of a node's cards: each card is in exactly one part (design.md section 9)."""

from __future__ import annotations

from gpuadmin.planning.facts import (
    MAX_CARDS,
    CardAccount,
    CardFact,
    NodeFacts,
    Note,
    Policy,
    ResourceRow,
    Use,
)
from gpuadmin.planning.resources import ResourceName, labelled, replicas


def cards_of_agent(
    facts: NodeFacts, rows: tuple[ResourceRow, ...], closed: str, policy: Policy
) -> tuple[CardAccount, ...] | None:
    """Cards as the agent reports them; None when no agent ever did."""
    if facts.cards is None:
        return None
    held = _held_uuids(facts)
    whole_left = sum(r.free_now or 0 for r in rows if r.unit == "card" and not r.note)
    part_left = sum(r.free_now or 0 for r in rows if r.unit in ("slice", "slot") and not r.note)
    accounts = []
    for card in sorted(facts.cards, key=lambda c: c.index):
        is_held = None if held is None else card.uuid in held
        use, reason = _use(card, is_held, policy)
        if use is Use.FREE:
            if facts.pods is None:
                unknown = "pods can't be listed, so nobody knows whether it is promised"
                accounts.append(_account(card, Use.UNKNOWN, unknown, held=False))
                continue
            cut = card.mig or not any(r.unit == "card" for r in rows)
            left = part_left if cut else whole_left
            if left <= 0:
                use, reason = Use.BLOCKED, closed or _why_blocked(facts, rows)
            elif not cut:
                whole_left -= 1
        accounts.append(_account(card, use, reason, held=is_held))
    return tuple(accounts)


def _account(card: CardFact, use: Use, reason: str, *, held: bool | None) -> CardAccount:
    return CardAccount(card.uuid, card.index, use, held, reason, observed=card.current)


def _held_uuids(facts: NodeFacts) -> set[str] | None:
    """Cards of which a pod holds any part. A MIG device counts for the card that carries it."""
    if facts.held is None:
        if facts.pods is not None and not any(pod.requests for pod in facts.pods):
            return set()
        return None
    of_instance = {i.uuid: card.uuid for card in facts.cards or () for i in card.instances}
    uuids = {h.gpu_uuid or of_instance.get(h.mig_uuid or "") for h in facts.held}
    return {uuid for uuid in uuids if uuid}


def _use(card: CardFact, held: bool | None, policy: Policy) -> tuple[Use, str]:
    if card.state in ("lost", "missing"):
        return Use.FAILED, card.state
    if card.state == "error":
        return Use.UNKNOWN, "the card answers with an error"
    if held is None:
        return Use.UNKNOWN, "the kubelet does not tell which pod holds it"
    return _use_of_held(card, policy) if held else (Use.FREE, "")


def _use_of_held(card: CardFact, policy: Policy) -> tuple[Use, str]:
    if card.mig:
        return Use.UNMEASURED, "not measured in MIG mode"
    if not card.current or card.utilization_percent is None:
        return Use.UNMEASURED, "no current reading"
    if card.utilization_percent >= policy.busy_percent:
        return Use.BUSY, ""
    idle = (card.idle_for_seconds or 0) >= policy.idle_seconds
    return (Use.IDLE if idle else Use.QUIET), ""


def _why_blocked(facts: NodeFacts, rows: tuple[ResourceRow, ...]) -> str:
    full = [row for row in rows if row.requested and row.free == 0 and not row.note]
    if full and (holders := _holders_of_failed(facts)):
        return (
            f"out of reach until {holders}: the scheduler only compares counts, and a failed card "
            "is still held"
        )
    if withdrawn := next((row for row in full if row.unhealthy), None):
        return (
            f"out of reach: the device plugin withdrew {withdrawn.unhealthy} of "
            f"{withdrawn.capacity}, this card or one that is held"
        )
    if any(row.requested for row in rows):
        return "promised to a pod that has not started"
    if all((row.allocatable or 0) == 0 for row in rows):
        return "the device plugin advertises nothing"
    return "no free resource name fits it"


def _holders_of_failed(facts: NodeFacts) -> str:
    """``team/p1 leaves the failed GPU 0``; "" when no failed card is held (C01)."""
    failed = {c.uuid: c.index for c in facts.cards or () if c.state in ("lost", "missing")}
    held = {
        f"{h.namespace}/{h.pod}": failed[h.gpu_uuid]
        for h in facts.held or ()
        if h.gpu_uuid in failed
    }
    return " and ".join(f"{pod} leaves the failed GPU {i}" for pod, i in sorted(held.items()))


def cards_of_api(facts: NodeFacts, rows: tuple[ResourceRow, ...]) -> tuple[CardAccount, ...]:
    """Cards known only by the API's counts: how many, and how many of them are asked for.

    How many are held is known, not which: an ``index`` here only counts. Which card carries a
    slice or a slot is known to the node alone.
    """
    whole = next((row for row in rows if row.name == "nvidia.com/gpu"), None)
    label = facts.labels.get("nvidia.com/gpu.count", "")
    owned = labelled(label, MAX_CARDS)
    factor = replicas(facts.labels, ResourceName("nvidia.com/gpu", "card"))
    if owned == 0 and whole is not None and whole.capacity:
        owned = 0 if whole.note is Note.FAULT else max(0, whole.capacity) // factor
    counted = [row for row in rows if row.unit in ("card", "slot")]
    held = min(owned, sum(row.requested or 0 for row in counted))
    if unknown := _why_unknown(facts, rows):
        return tuple(CardAccount(None, i, Use.UNKNOWN, None, unknown) for i in range(owned))
    reachable = held + -(-sum(row.free_now or 0 for row in counted) // factor)
    why = next((row.why for row in rows if row.why), "the device plugin does not advertise it")
    return tuple(
        CardAccount(None, index, Use.UNMEASURED, True, "no agent on this node")
        if index < held
        else CardAccount(None, index, Use.FREE, False)
        if index < reachable
        else CardAccount(None, index, Use.BLOCKED, False, why)
        for index in range(owned)
    )


def _why_unknown(facts: NodeFacts, rows: tuple[ResourceRow, ...]) -> str:
    """Why the API's counts do not tell how many cards are held; "" when they do."""
    if facts.pods is None:
        return "pods can't be listed"
    if any(row.unit == "slice" and row.capacity for row in rows):
        return "cut into slices, and no agent reports"
    if any(row.unit == "slot" and row.requested for row in rows):
        return "shared in time, and no agent reports which cards its slots are on"
    return ""
