"""Taints and tolerations: who matches what, and how a taint list is edited.

A taint is identified by (key, effect) (C21). Taint lists are edited as the JSON that the API gave,
so that what we do not know (``timeAdded``) stays as it was (C20).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gpuadmin.planning.edits import Edit

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"
EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
CLOSING_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)

JsonTaint = dict[str, Any]

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_DNS_SUBDOMAIN = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII
)


@dataclass(frozen=True, order=True)
class Taint:
    """What the scheduler looks at: key, effect and value ("" where the taint has none)."""

    key: str
    effect: str
    value: str = ""

    @classmethod
    def of(cls, taint: Mapping[str, Any]) -> Taint:
        """From the API's JSON."""
        return cls(str(taint["key"]), str(taint["effect"]), str(taint.get("value") or ""))

    def json(self) -> JsonTaint:
        """As it is written: no value where it is empty, and nothing else."""
        value = {"value": self.value} if self.value else {}
        return {"key": self.key, **value, "effect": self.effect}

    def __str__(self) -> str:
        return f"{self.key}{'=' + self.value if self.value else ''}:{self.effect}"


class Toleration(Protocol):
    """The API's toleration; any of its fields may be missing (`kube.structs.Toleration`)."""

    @property
    def key(self) -> str | None: ...
    @property
    def operator(self) -> str | None: ...
    @property
    def value(self) -> str | None: ...
    @property
    def effect(self) -> str | None: ...
    @property
    def toleration_seconds(self) -> int | None: ...


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration matches one taint, by the API's rules (C22).

    Effect missing: any effect. Operator missing: Equal. No key with Exists: every taint; no key
    with Equal is invalid and matches nothing. An operator that we do not know matches nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and bool(toleration.key) and (toleration.value or "") == taint.value


def is_tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any of a pod's tolerations matches the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def closes(taint: Taint) -> bool:
    """Whether the taint bars pods at all; PreferNoSchedule never does (C22)."""
    return taint.effect in CLOSING_EFFECTS


def seconds_until_eviction(tolerations: Sequence[Toleration], taint: Taint) -> int | None:
    """When a NoExecute taint ends a pod that runs there: in 0 or more seconds; None: never.

    As the taint manager does it, the first matching toleration decides; without
    ``tolerationSeconds`` the pod stays, and 0 or less means at once (C22).
    """
    if taint.effect != NO_EXECUTE:
        return None
    match = next((one for one in tolerations if tolerates(one, taint)), None)
    if match is None:
        return 0
    seconds = match.toleration_seconds
    return None if seconds is None else max(0, seconds)


def add(taints: Sequence[JsonTaint] | None, taint: Taint) -> Edit:
    """Adds the taint, or gives the one with its key and effect the new value (C20, C21)."""
    listed = list(taints or [])
    for position, present in enumerate(listed):
        if _same(present, taint.key, taint.effect):
            was = Taint.of(present)
            if was == taint:
                return Edit(None, f"Already so: {taint} is there.")
            listed[position] = taint.json()
            return Edit(listed, f"{was} becomes {taint}.")
    return Edit([*listed, taint.json()], f"{taint} is added.")


def remove(taints: Sequence[JsonTaint] | None, key: str, effect: str) -> Edit:
    """Removes the taint of this key and effect, and no other of the key (C21)."""
    listed = list(taints or [])
    gone = [one for one in listed if _same(one, key, effect)]
    if not gone:
        return Edit(None, f"Not present: there is no {key}:{effect}.")
    return Edit([one for one in listed if one not in gone], f"{Taint.of(gone[0])} is removed.")


def restore(
    taints: Sequence[JsonTaint] | None, wrote: JsonTaint | None, was: JsonTaint | None
) -> Edit:
    """Puts back what was there before we wrote, only where it still reads as we wrote it.

    ``wrote`` and ``was`` are one taint before and after our change; None means absent. Everything
    that others put there meanwhile stays. At least one of the two is given.
    """
    known = wrote or was
    if known is None:
        raise ValueError("nothing to restore")
    listed = list(taints or [])
    key, effect = known["key"], known["effect"]
    place = next((i for i, one in enumerate(listed) if _same(one, key, effect)), None)
    present = None if place is None else Taint.of(listed[place])
    if present == (was and Taint.of(was)):
        return Edit(None, f"Already as it was: {present or f'there is no {key}:{effect}'}.")
    if present != (wrote and Taint.of(wrote)):
        now = f"it is {present}" if present else "it is gone"
        return Edit(None, f"Left alone: {key}:{effect} was changed by somebody else, {now}.")
    if was is None:
        return remove(listed, key, effect)
    if place is None:
        return Edit([*listed, was], f"{Taint.of(was)} comes back.")
    listed[place] = was
    return Edit(listed, f"{present} becomes {Taint.of(was)} again.")


def find(taints: Iterable[JsonTaint] | None, key: str, effect: str) -> JsonTaint | None:
    """The taint of this key and effect, as the API gave it."""
    return next((one for one in taints or [] if _same(one, key, effect)), None)


def problems(taint: Taint) -> dict[str, str]:
    """Field → sentence for whatever Kubernetes would refuse in the taint; empty when it is good."""
    found = {
        "key": key_problem(taint.key),
        "value": _value_problem(taint.value),
        "effect": effect_problem(taint.effect),
    }
    return {field: sentence for field, sentence in found.items() if sentence}


def key_problem(key: str) -> str | None:
    """Why the key is no qualified name (optional DNS prefix, "/", name), or None."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _DNS_SUBDOMAIN.fullmatch(prefix)):
        return "Before the “/” a key has a DNS name such as example.com, of at most 253 characters."
    if len(name) > 63 or not _NAME.fullmatch(name):
        return (
            "A key has 1 to 63 letters, digits, “-”, “_” or “.”, "
            "and begins and ends with a letter or digit."
        )
    return None


def effect_problem(effect: str) -> str | None:
    """Why the effect is none, or None."""
    return None if effect in EFFECTS else f"An effect is one of {', '.join(EFFECTS)}."


def _value_problem(value: str) -> str | None:
    if not value or (len(value) <= 63 and _NAME.fullmatch(value)):
        return None
    return (
        "A value is empty, or has at most 63 letters, digits, “-”, “_” or “.”, "
        "and begins and ends with a letter or digit."
    )


def _same(taint: Mapping[str, Any], key: str, effect: str) -> bool:
    return bool(taint.get("key") == key and taint.get("effect") == effect)
