"""What an address or a form asks of cordons."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import QueryDict


@dataclass(frozen=True)
class CordonForm:
    """``names`` are nodes; ``action`` is cordon or uncordon."""

    names: tuple[str, ...]
    action: str = "cordon"

    @classmethod
    def read(cls, query: QueryDict) -> CordonForm:
        """From an address or a posted form."""
        action = "uncordon" if query.get("action") == "uncordon" else "cordon"
        return cls(tuple(dict.fromkeys(query.getlist("node"))), action)

    @property
    def kind(self) -> str:
        return f"node.{self.action}"

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """All of it, to be sent along with the confirmation."""
        return [*(("node", name) for name in self.names), ("action", self.action)]
