"""Which resource names are accelerators, and in what they count.

By pattern, never by a fixed list (C08): ``nvidia.com/gpu``, ``.shared``, every ``mig-*`` that a
driver may think of (contracts.md 1.5). Nodes, pods, quotas and history use this one recogniser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Unit = Literal["card", "slice", "slot", "other"]

_NVIDIA = re.compile(
    r"nvidia\.com/(?P<base>gpu|mig-(?P<profile>[a-z0-9][a-z0-9.\-]*?))(?P<shared>\.shared)?"
)
MAX_NAME = 317  # a prefix of 253 characters, "/", a name of 63
MAX_COUNT = 10**12  # more is not believed; sums of it stay far below a bigint
MAX_REPLICAS = 65_536
_OTHER = re.compile(r"[a-z0-9.\-]+/.*(gpu|gaudi|npu|tpu|neuron|xpu|i915|accelerator).*", re.I)


@dataclass(frozen=True)
class ResourceName:
    """A recognised name. ``profile`` is as in the name: ``+`` stands as ``.`` there (1g.5gb.me)."""

    name: str
    unit: Unit
    profile: str | None = None
    renamed: bool = False  # ends in .shared: time-slicing with renameByDefault

    @property
    def nvidia(self) -> bool:
        """Whether it counts in NVIDIA totals; other vendors' names are only listed (C08 n4)."""
        return self.unit != "other"

    @property
    def short(self) -> str:
        """Without the vendor's prefix, for narrow columns."""
        return self.name.removeprefix("nvidia.com/")


@lru_cache(maxsize=1024)  # the same few names, on every node and pod
def recognise(name: str) -> ResourceName | None:
    """None when the name is no accelerator's, or longer than a name can be."""
    if len(name) > MAX_NAME:
        return None
    match = _NVIDIA.fullmatch(name)
    if match:
        shared = match["shared"] is not None
        unit: Unit = "slot" if shared else "slice" if match["profile"] else "card"
        return ResourceName(name, unit, match["profile"], shared)
    return ResourceName(name, "other") if _OTHER.fullmatch(name) else None


def profile_in_name(profile: str) -> str:
    """A MIG profile as it stands in a resource name: ``1g.10gb+me`` → ``1g.10gb.me``."""
    return profile.replace("+", ".")


def count(text: str | int | None) -> int | None:
    """An extended resource's count; they are integers. None when it is none, or past belief."""
    found = _integer(text)
    return found if found is not None and abs(found) <= MAX_COUNT else None


def asked(text: str | int | None) -> int:
    """How many a container asks for: what is past belief is as much as can be, never nothing."""
    return min(max(_integer(text) or 0, 0), MAX_COUNT)


def _integer(text: str | int | None) -> int | None:
    match = re.fullmatch(r"(-?[0-9]{1,19})(k|M|G|Ki|Mi|Gi)?", str(text))
    if not match:
        return None
    scale = {"k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
    return int(match[1]) * scale.get(match[2] or "", 1)


def replicas(labels: Mapping[str, str], resource: ResourceName) -> int:
    """How many slots one device of this name is shared into, by GFD's labels; 1 when not."""
    key = f"mig-{resource.profile}.replicas" if resource.profile else "gpu.replicas"
    text = labels.get(f"nvidia.com/{key}", "")
    return max(1, labelled(text, MAX_REPLICAS))


def labelled(text: str, most: int) -> int:
    """A count that a label gives; 0 when it is none, or more than ``most``."""
    found = _integer(text) or 0
    return found if 0 <= found <= most else 0
