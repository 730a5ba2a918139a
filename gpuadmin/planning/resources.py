"""Which resource names are accelerators, and in what they count.

By pattern, never by a fixed list (C08): ``nvidia.com/gpu``, ``.shared``, every ``mig-*`` that a
driver may think of (contracts.md 1.5). Nodes, pods, quotas and history use this one recogniser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Unit = Literal["card", "slice", "slot", "other"]

_NVIDIA = re.compile(
    r"nvidia\.com/(?P<base>gpu|mig-(?P<profile>[a-z0-9][a-z0-9.\-]*?))(?P<shared>\.shared)?"
)
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


def recognise(name: str) -> ResourceName | None:
    """None when the name is no accelerator's."""
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
    """An extended resource's count; they are integers. None when it is no integer at all."""
    if text is None:
        return None
    match = re.fullmatch(r"(-?\d+)(k|M|G|Ki|Mi|Gi)?", str(text))
    if not match:
        return None
    scale = {"k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
    return int(match[1]) * scale.get(match[2] or "", 1)


def replicas(labels: Mapping[str, str], resource: ResourceName) -> int:
    """How many slots one device of this name is shared into, by GFD's labels; 1 when not."""
    key = f"mig-{resource.profile}.replicas" if resource.profile else "gpu.replicas"
    text = labels.get(f"nvidia.com/{key}", "")
    return int(text) if text.isdigit() and int(text) > 1 else 1
