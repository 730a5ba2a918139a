"""List, then watch, for ever: one collection of objects as a stream of changes.

A stream never ends by itself and never spins: each failure backs off (C37), a 410 lists again, a
429 waits as long as it is told to. What is seen of the failure goes to the consumer as a `Trouble`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from gpuadmin.kube import errors, structs
from gpuadmin.kube.client import KubeClient, decode
from gpuadmin.kube.objects import Unreadable, identity

T = TypeVar("T")
MAX_BACKOFF_SECONDS = 60.0
MAX_TOLD_SECONDS = 600.0  # as long as a server may tell us to wait
FORBIDDEN_RETRY_SECONDS = 60.0


@dataclass(frozen=True)
class Listed(Generic[T]):
    """The whole collection as of now: what is not in it is gone."""

    items: list[T | Unreadable]


@dataclass(frozen=True)
class Changed(Generic[T]):
    """One object was added or modified, or is gone."""

    object: T | Unreadable
    gone: bool


@dataclass(frozen=True)
class Alive:
    """A bookmark: nothing changed, and the API server says so."""


@dataclass(frozen=True)
class Trouble:
    """Reading fails; what was read before stays true of its time."""

    sentence: str
    forbidden: bool = False


Change = Listed[T] | Changed[T] | Alive | Trouble


def stream(
    client: KubeClient,
    path: str,
    read: Callable[[msgspec.Raw], T | Unreadable],
    *,
    sleep: Callable[[float], bool],
    silence_seconds: float = 90.0,
    jitter: Callable[[], float] = random.random,
) -> Iterator[Change[T]]:
    """Changes of the collection at ``path``, each object as ``read`` makes it at once: what waits
    for the end of a list is only what is wanted of it. ``sleep(s)`` returns True to stop."""
    position = _Position()
    failures = 0
    while True:
        try:
            for change in _read(client, path, read, position, silence_seconds):
                if isinstance(change, Changed | Alive):
                    failures = 0  # a list alone is no success: a 410 may follow it each time
                yield change
            pause = 0.2 + 0.3 * jitter()  # ended in good order (C37 d): go on from there
        except errors.Gone:
            position.version = None
            pause = _backoff(failures, jitter)
            failures += 1
        except errors.KubeError as error:
            failures += 1
            forbidden = isinstance(error, errors.Forbidden)
            if forbidden:
                position.version = None
            yield Trouble(error.sentence, forbidden)
            pause = _pause(error, failures, jitter)
        if sleep(pause):
            return


@dataclass
class _Position:
    """The resource version to go on from; None: list first."""

    version: str | None = None


def _read(
    client: KubeClient,
    path: str,
    read: Callable[[msgspec.Raw], T | Unreadable],
    position: _Position,
    silence_seconds: float,
) -> Iterator[Change[T]]:
    """One list if need be, then one watch request until the server ends it."""
    if position.version is None:
        listed = client.list_all(path, read)
        yield Listed(listed.items)
        position.version = listed.resource_version
    for line in client.watch(path, position.version, silence_seconds=silence_seconds):
        event = decode(line, structs.WatchEvent)
        if event.type == "ERROR":
            _raise(decode(event.object, structs.ErrorObject))
        if event.type == "BOOKMARK":
            version = decode(event.object, structs.Bookmark).metadata.resource_version
            yield Alive()
        else:
            version = identity(event.object).metadata.resource_version
            yield Changed(read(event.object), gone=event.type == "DELETED")
        position.version = version or position.version


def _raise(status: structs.ErrorObject) -> None:
    sentence = f"The watch was ended: {status.message or status.reason or 'no reason given'}"
    if status.code == 410 or status.reason in ("Expired", "Gone"):
        raise errors.Gone(sentence, status=410)
    raise errors.ServerFault(sentence, status=status.code)


def _pause(error: errors.KubeError, failures: int, jitter: Callable[[], float]) -> float:
    if isinstance(error, errors.Busy):
        return min(error.retry_after_seconds, MAX_TOLD_SECONDS) * (1 + 0.1 * jitter())
    if isinstance(error, errors.Forbidden):
        return FORBIDDEN_RETRY_SECONDS
    return _backoff(failures, jitter)


def _backoff(failures: int, jitter: Callable[[], float]) -> float:
    """0, then about 1, 2, 4 … up to 60 s, each between half and the whole of it."""
    if failures <= 0:
        return 0.0
    whole: float = min(MAX_BACKOFF_SECONDS, 2.0 ** min(failures - 1, 10))
    return whole * (0.5 + 0.5 * jitter())
