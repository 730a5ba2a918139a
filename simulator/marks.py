"""The simulator's own annotations, and times as people write them.

They say what a simulated pod or node does beyond what Kubernetes can say of it. A real API server
carries them along like any other annotation.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

PREFIX = "sim.gpuadmin.io/"
LOAD = PREFIX + "load"  # utilisation in percent, one number or one for each card held: "88,91"
MEMORY = PREFIX + "memory"  # memory used, in percent of each card or slice held
CARDS = PREFIX + "cards"  # card indexes to be served from: "0,1"
RUNS_FOR = PREFIX + "runs-for"  # the pod succeeds after this time: "5s"
ENDS_AFTER = PREFIX + "ends-after"  # a pod takes this long to end, at most its grace: "2s"
LOG = PREFIX + "log"  # lines that the pod writes to its log when it starts
AGE = PREFIX + "age"  # our own API server dates the object back by this much: "4d6h"

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:\d+[dhms])+")


def seconds(text: str) -> int:
    """``1d17h`` → 147600. Raises ``ValueError`` for anything else."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a time such as 5s, 20m or 4d6h")
    return sum(int(part[:-1]) * _UNITS[part[-1]] for part in re.findall(r"\d+[dhms]", text))


def mark(value: dict[str, Any], name: str) -> str | None:
    """One of the annotations above, of a Kubernetes object."""
    text = (value.get("metadata", {}).get("annotations") or {}).get(name)
    return text if isinstance(text, str) else None


def age_seconds(value: dict[str, Any]) -> int:
    """How old an object says it is; 0 without the annotation or with one that can't be read."""
    return duration(value, AGE)


def duration(value: dict[str, Any], name: str) -> int:
    """An annotation that is a time, in seconds; 0 without it or with one that can't be read."""
    try:
        return seconds(mark(value, name) or "0s")
    except ValueError:
        return 0


def timestamp(moment: datetime) -> str:
    """As Kubernetes writes a metav1.Time."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> datetime:
    """Raises ``ValueError``."""
    return datetime.fromisoformat(text)


def now(*, ago_seconds: float = 0) -> str:
    """The present, or a moment in the past, as Kubernetes writes it."""
    return timestamp(datetime.now(UTC) - timedelta(seconds=ago_seconds))
