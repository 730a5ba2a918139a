"""What an address or a form asks of taints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from gpuadmin.planning.taints import EFFECTS, NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE

EFFECT_WORDS = {
    NO_SCHEDULE: "New pods without a toleration stay away. Running pods stay.",
    PREFER_NO_SCHEDULE: "The scheduler looks elsewhere first. It closes nothing.",
    NO_EXECUTE: "Running pods without a toleration are ended, new ones stay away.",
}


@dataclass(frozen=True)
class TaintForm:
    """``names`` are nodes. Complete enough to preview once ``key`` and ``effect`` are there."""

    names: tuple[str, ...]
    action: str = "add"
    key: str = ""
    value: str = ""
    effect: str = ""

    @classmethod
    def read(cls, query: QueryDict) -> TaintForm:
        """From an address or a posted form."""
        return cls(
            names=tuple(dict.fromkeys(query.getlist("node"))),
            action="remove" if query.get("action") == "remove" else "add",
            key=query.get("key", "").strip(),
            value=query.get("value", "").strip(),
            effect=query.get("effect", ""),
        )

    @property
    def asked(self) -> bool:
        return bool(self.key or self.effect)

    @property
    def kind(self) -> str:
        return f"taint.{self.action}"

    def parameters(self, uids: list[str]) -> dict[str, Any]:
        """As operations take them."""
        value = {"value": self.value} if self.action == "add" else {}
        return {"nodes": uids, "key": self.key, "effect": self.effect, **value}

    @property
    def effects(self) -> list[tuple[str, str, bool]]:
        """Name, what it does, chosen."""
        chosen = self.effect or NO_SCHEDULE
        return [(effect, EFFECT_WORDS[effect], effect == chosen) for effect in EFFECTS]

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """All of it, to be sent along with the confirmation."""
        fields = [("action", self.action), ("key", self.key), ("value", self.value)]
        return [*(("node", name) for name in self.names), *fields, ("effect", self.effect)]

    def address(self, **changes: str) -> str:
        """The query of this form with some fields changed."""
        fields = {
            "action": self.action,
            "key": self.key,
            "value": self.value,
            "effect": self.effect,
            **changes,
        }
        pairs = [("node", name) for name in self.names]
        return "?" + urlencode([*pairs, *((k, v) for k, v in fields.items() if v)])
