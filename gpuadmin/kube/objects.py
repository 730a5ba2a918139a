"""Reading one object of a list or a watch: as its struct, or as `Unreadable` (C36)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from gpuadmin.kube import structs

T = TypeVar("T", structs.Node, structs.Pod)


@dataclass(frozen=True)
class Unreadable:
    """An object that is not as the API promises: what it is called, and what is wrong with it.

    ``uid`` is empty when not even that could be read.
    """

    uid: str
    name: str
    error: str


def reader(kind: type[T]) -> Callable[[msgspec.Raw], T | Unreadable]:
    """A function that decodes one raw object and never raises."""
    decoder = msgspec.json.Decoder(kind)

    def read(raw: msgspec.Raw) -> T | Unreadable:
        try:
            return decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _unreadable(raw, str(error))

    return read


def _unreadable(raw: msgspec.Raw, error: str) -> Unreadable:
    meta = identity(raw).metadata
    name = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    return Unreadable(meta.uid, name, error)


def identity(raw: msgspec.Raw) -> structs.Identity:
    """What little every object has; empty when not even that can be read."""
    try:
        return msgspec.json.decode(raw, type=structs.Identity)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return structs.Identity()
