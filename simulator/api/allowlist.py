"""The bounds of the simulated API: the table in simulator/README.md, read at start.

The README is the source, so that what is written there is what is served.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from simulator.api.errors import ApiError

README = Path(__file__).parents[1] / "README.md"
_ROW = re.compile(r"\|\s*`(\w+)`\s*\|\s*`([\w.]+)`\s*\|\s*(?:`(\w+)`)?\s*\|\s*(\S.*?)\s*\|")


class Row(NamedTuple):
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
            text = f"The simulator does not do this: {verb} {name} is not on the allow-list of "
            raise ApiError(501, f"{text}simulator/README.md. Use a real control plane, or add it.")
        self.used.add(row)

    def verbs(self, resource: str) -> dict[str, list[str]]:
        """Subresource ("" for the resource itself) → its verbs, for discovery."""
        found: dict[str, list[str]] = defaultdict(list)
        for row in self.rows:
            if row.resource == resource:
                found[row.subresource].append(row.verb)
        return found


def load() -> AllowList:
    """The table as it stands in the README."""
    return AllowList(README.read_text(encoding="utf-8"))
