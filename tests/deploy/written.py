"""What docs/permissions.md says, as data: the tests hold it against the cluster."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def permissions(components: set[str], namespace: str) -> dict[str, set[str]]:
    """The verbs by resource that these components give in the namespace."""
    found: dict[str, set[str]] = {}
    for component, where, resources, verbs, _ in _table("| Component | Namespace"):
        if component in components and where in ("all", namespace):
            for resource in resources.split(", "):
                found.setdefault(resource, set()).update(verbs.split())
    return found


def exceptions(overlay: str) -> set[str]:
    """The controls of Pod Security "restricted" that the agent of this overlay does not keep."""
    rows = _table("| Overlay | Refused")
    return {
        one for name, refused, _ in rows if name in ("all", overlay) for one in refused.split(", ")
    }


def _table(head: str) -> list[list[str]]:
    """The rows of the table that begins so, as cells without marks."""
    text = (ROOT / "docs" / "permissions.md").read_text()
    lines = text[text.index(head) :].split("\n\n", 1)[0].splitlines()[2:]
    return [
        [cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines
    ]
