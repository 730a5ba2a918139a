"""What a simulated container has written, made from its pod: nothing is kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from simulator import marks
from simulator.nodes.client import Value

EVERY_SECONDS = 10  # a pod at work says so
DONE = "done"
KEPT_LINES = 2000  # as if the file had been rotated


class LogError(Exception):
    """There is no such log; the message is a kubelet's."""


class Line(NamedTuple):
    """One line and when it was written."""

    at: datetime
    text: str


class Query(NamedTuple):
    """The options of a request: ``since`` None is from the start, ``tail`` None is all."""

    since: datetime | None
    tail: int | None
    timestamps: bool

    def encode(self, found: list[Line]) -> bytes:
        """Lines as they go over the wire."""
        stamp = "{}Z ".format
        return b"".join(
            f"{stamp(line.at.strftime('%Y-%m-%dT%H:%M:%S.%f000')) if self.timestamps else ''}"
            f"{line.text}\n".encode()
            for line in found
        )


def query(options: Mapping[str, str], now: datetime) -> Query:
    """From the query of a request. Raises ``ValueError``."""
    since = None
    if text := options.get("sinceTime"):
        since = marks.parse_timestamp(text)
    elif text := options.get("sinceSeconds"):
        since = now - timedelta(seconds=int(text))
    tail = options.get("tailLines")
    return Query(since, int(tail) if tail else None, options.get("timestamps") == "true")


def written(pod: Value, container: str, until: datetime, *, previous: bool = False) -> list[Line]:
    """All lines until a moment. Raises ``LogError`` where there is no such log."""
    name = pod["metadata"]["name"]
    found = (pod.get("status") or {}).get("containerStatuses") or []
    status = next((each for each in found if each["name"] == container), None)
    if status is None:
        text = f'container "{container}" in pod "{name}" is waiting to start: ContainerCreating'
        raise LogError(text)
    state = status["state"]
    ended = state.get("terminated") or {}
    started = marks.parse_timestamp((state.get("running") or ended)["startedAt"])
    if previous:
        if not status.get("restartCount"):
            text = f'previous terminated container "{container}" in pod "{name}" not found'
            raise LogError(text)
        return [Line(started - timedelta(seconds=1), "ended, to be started again")]
    finished = marks.parse_timestamp(ended["finishedAt"]) if ended else until
    lines = [Line(started, f"starting {status['image']}")]
    lines += [Line(started, text) for text in (marks.mark(pod, marks.LOG) or "").splitlines()]
    beats = int((min(finished, until) - started).total_seconds() // EVERY_SECONDS)
    for number in range(max(1, beats - KEPT_LINES), beats + 1):
        at = started + timedelta(seconds=number * EVERY_SECONDS)
        lines.append(Line(at, f"at work for {number * EVERY_SECONDS} s"))
    return [*lines, Line(finished, DONE)] if ended else lines


def over(pod: Value) -> bool:
    """Whether nothing will be written any more."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def select(lines: list[Line], asked: Query) -> list[Line]:
    """Those lines that a request asked for."""
    found = [line for line in lines if asked.since is None or line.at >= asked.since]
    return found if asked.tail is None else found[len(found) - asked.tail :] if asked.tail else []


def now() -> datetime:
    """The present, as lines are dated."""
    return datetime.now(UTC)
