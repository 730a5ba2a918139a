"""What a change has to say of itself so that the engine can preview, run, verify and undo it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from gpuadmin.accounts.roles import Permission
from gpuadmin.fleet.models import Cluster, Node
from gpuadmin.kube.client import KubeClient
from gpuadmin.operations.errors import BadParameters
from gpuadmin.planning.edits import Edit, Value
from gpuadmin.planning.plan import Plan

P = TypeVar("P", bound=msgspec.Struct)
S = TypeVar("S")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # NUL and lone surrogates
FIELD_MANAGER = "gpuadmin"  # signs our writes: metadata.managedFields tells them from others'


@dataclass(frozen=True)
class Image:
    """An object's part that a change writes, as read: ``version`` makes the write conditional.

    ``writer`` is the field manager that changed the part last, "" where the API server names none.
    """

    version: str
    value: Value
    writer: str = ""

    def stored(self) -> dict[str, Any]:
        """As a target's rows keep it."""
        return {"version": self.version, "value": self.value}


@dataclass(frozen=True)
class Ref:
    """One target: an object by uid, and the name under which it is asked for."""

    uid: str
    name: str


@dataclass(frozen=True)
class Done:
    """What a change made of one target."""

    target: Ref
    before: Value
    after: Value


class Kind(ABC, Generic[P, S]):
    """One change. Reading and writing go to the cluster; planning and editing are pure."""

    name: ClassVar[str]
    permission: ClassVar[Permission]
    object_kind: ClassVar[str]
    component: ClassVar[str]  # of deploy/components: what our account must hold to run it
    offered: ClassVar[bool] = True  # False: only ever made as an undo
    parameters: type[P]

    def parse(self, raw: object) -> P:
        """Strict: no unknown field, no conversion, nothing that PostgreSQL cannot store.

        Raises ``BadParameters``.
        """
        if unstorable := _unstorable_fields(raw):
            raise BadParameters(dict.fromkeys(unstorable, "Has a character that is no text."))
        try:
            parameters = msgspec.convert(raw, self.parameters)
        except msgspec.ValidationError as error:
            raise BadParameters(_by_field(str(error))) from error
        problems = self.problems(parameters)
        if problems:
            raise BadParameters(problems)
        return parameters

    def problems(self, parameters: P) -> dict[str, str]:
        """Field → sentence for what the API server would refuse."""
        return {}

    @abstractmethod
    def read(self, cluster: Cluster, client: KubeClient, parameters: P) -> S:
        """All that the plan needs, fresh from the cluster. Raises ``KubeError``s."""

    @abstractmethod
    def plan(self, snapshot: S, parameters: P) -> Plan:
        """The change as it would be on this snapshot."""

    @abstractmethod
    def look(self, client: KubeClient, target: Ref) -> Image:
        """One target now. Raises ``TargetGone`` and ``KubeError``s."""

    @abstractmethod
    def edit(self, parameters: P, target: Ref, image: Image) -> Edit:
        """Our own delta on what is there now; nothing to write means that it holds."""

    @abstractmethod
    def write(self, client: KubeClient, target: Ref, image: Image, edit: Edit) -> Image:
        """Writes against the image's version. Raises ``Conflict`` when it has moved."""

    @abstractmethod
    def leaving(self, client: KubeClient, target: Ref, image: Image) -> list[str]:
        """Pods ("namespace/name") that the target as it is sends away, and that are still there."""

    @abstractmethod
    def identity(self, parameters: P, uid: str) -> str:
        """What of the target it changes: two changes of the same thing follow one another."""

    @abstractmethod
    def stored(self, node: Node) -> Value:
        """What a target was when the cluster was last read, from our own rows."""

    @abstractmethod
    def undo(self, parameters: P, done: Sequence[Done]) -> tuple[str, dict[str, Any]] | None:
        """Name and parameters of the change that puts back what was there; None: no difference."""


def _unstorable_fields(raw: object) -> list[str]:
    if not isinstance(raw, Mapping):
        return ["parameters"] if _is_unstorable(raw) else []
    return [
        "parameters" if _is_unstorable(name) else str(name)
        for name, value in raw.items()
        if _is_unstorable(name) or _is_unstorable(value)
    ]


def _is_unstorable(value: object) -> bool:
    if isinstance(value, str):
        return bool(_UNSTORABLE.search(value))
    if isinstance(value, Mapping):
        return any(map(_is_unstorable, [*value.keys(), *value.values()]))
    return isinstance(value, list) and any(map(_is_unstorable, value))


def _by_field(message: str) -> dict[str, str]:
    """msgspec's message by field: "Expected `str`, got `int` - at `$.key`"."""
    text, _, path = message.partition(" - at `$")
    name = path.rstrip("`").lstrip(".") or (
        text.split("`")[1] if "field `" in text else "parameters"
    )
    return {name: f"{text}."}
