"""What GPU feature discovery's labels claim, against what NVML says (C11; contracts.md section 2).

A label is a claim: it may be an hour old, and it can describe one model only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from gpuadmin.planning.resources import MAX_COUNT, labelled

PRODUCT, COUNT = "nvidia.com/gpu.product", "nvidia.com/gpu.count"
STRATEGY = "nvidia.com/mig.strategy"
MIG_CONFIG, MIG_STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
CHANGING = frozenset({"pending", "rebooting"})
_INVALID = "-MIG-INVALID"
_SUFFIX = re.compile(r"(-MIG-[^-]+)?(-SHARED)?")


@dataclass(frozen=True)
class Hardware:
    """What the agent reads of a node: cards by model, how many are cut, their slices by profile."""

    models: Counter[str]
    cut: int
    slices: Counter[str]


def is_mig_invalid(labels: Mapping[str, str]) -> bool:
    """Whether the layout breaks the strategy ``single``, so that nothing is advertised."""
    return labels.get(PRODUCT, "").endswith(_INVALID)


def contradictions(labels: Mapping[str, str], hardware: Hardware) -> list[str]:
    """One sentence for each label that NVML contradicts; none where a label is absent."""
    found = []
    product, models = labels.get(PRODUCT, ""), hardware.models
    if product and (len(models) > 1 or not any(_names(product, model) for model in models)):
        cards = " and ".join(f"{n} × {name}" for name, n in sorted(models.items()))
        found.append(f"The label gpu.product says {product}; the cards are {cards}.")
    claimed, counted = labels.get(COUNT, ""), _counted(labels, hardware)
    if claimed and labelled(claimed, MAX_COUNT) != counted:
        found.append(f"The label gpu.count says {claimed}; it should be {counted}.")
    return found


def _counted(labels: Mapping[str, str], hardware: Hardware) -> int:
    """What gpu.count counts: cards; with the strategy single, slices."""
    if labels.get(STRATEGY) == "single" and hardware.cut:
        return hardware.slices.total()
    return hardware.models.total()


def _names(product: str, model: str) -> bool:
    """Whether a label is a model's name as GFD writes it, whatever it says of sharing."""
    written = re.sub(r"[^A-Za-z0-9\-_. ]", "", model).replace(" ", "-")
    return product.startswith(written) and bool(_SUFFIX.fullmatch(product, len(written)))
