"""The bounds of the simulated API: the table in simulator/README.md, read at start.

The README is the source, so that what is written there is what is served.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from simulator.api.errors import ApiError

README = Path(__file__).parents[1] / "README.md"
_ROW = re.compile(r"\|\s*`(\w+)`\s*\|\s*`([\w.]+)`\s*\|\s*(?:`(\w+)`)?\s*\|\s*(\S.*?)\s*\|")


@dataclass(frozen=True)
class Row:
    """One thing that the API does, and who needs it."""

    verb: str
    resource: str
    subresource: str


class AllowList:
    """``used`` grows with each row that a request met; a test compares it with the table."""

    def __init__(self, text: str) -> None:
        found = _ROW.findall(text)
        self.rows = {Row(verb, resource, sub): who for verb, resource, sub, who in found}
        self.used: set[Row] = set()

    def check(self, verb: str, resource: str, subresource: str) -> None:
        """Raises 501 with a sentence for anything that is not in the table."""
        row = Row(verb, resource, subresource)
        if row not in self.rows:
            name = f"{resource}/{subresource}" if subresource else resource
            raise ApiError(
                501,
                f"The simulator does not do this: {verb} {name} is not on the allow-list of "
                "simulator/README.md. Believe only a real control plane here, or add a row with "
                "who needs it.",
            )
        self.used.add(row)

    def verbs(self, resource: str, subresource: str = "") -> list[str]:
        """The verbs of one resource, for discovery."""
        rows = self.rows
        return sorted(
            row.verb for row in rows if (row.resource, row.subresource) == (resource, subresource)
        )

    def subresources(self, resource: str) -> list[str]:
        """The subresources of one resource, for discovery."""
        return sorted({row.subresource for row in self.rows if row.resource == resource} - {""})


def load() -> AllowList:
    """The table as it stands in the README."""
    return AllowList(README.read_text(encoding="utf-8"))
