"""Every change that there is. A new one is a file here and a line in this table."""

from __future__ import annotations

from typing import Any

from gpuadmin.operations.errors import UnknownKind
from gpuadmin.operations.kinds.base import Kind
from gpuadmin.operations.kinds.cordons import Cordon, PutBack, Uncordon
from gpuadmin.operations.kinds.taints import Add, Remove, Restore

_ALL: tuple[Kind[Any, Any], ...] = (Add(), Remove(), Restore(), Cordon(), Uncordon(), PutBack())
KINDS: dict[str, Kind[Any, Any]] = {kind.name: kind for kind in _ALL}


def kind_of(name: str) -> Kind[Any, Any]:
    """The change of this name. Raises ``UnknownKind``."""
    try:
        return KINDS[name]
    except KeyError:
        offered = ", ".join(kind.name for kind in KINDS.values() if kind.offered)
        raise UnknownKind(f"There is no change “{name}”: it is one of {offered}.") from None
