"""The vocabulary of scripted situations, and the ConfigMap in which they travel.

Simulated nodes and the simulated API watch that ConfigMap, so that a situation works the same way
on a real API server (design.md section 9).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

NAMESPACE = "gpuadmin-sim"
CONFIGMAP_KEY = (NAMESPACE, "situations")
DATA_KEY = "situations.json"


class _Situation(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True
):
    pass


class LostCard(_Situation, frozen=True, kw_only=True, tag="lost-card"):
    """A card falls off the bus: NVML says GpuIsLost, the plugin marks it unhealthy (C25)."""

    node: str
    gpu: int
    xid: int = 79


class UnhealthyCard(_Situation, frozen=True, kw_only=True, tag="unhealthy-card"):
    """A card answers, but an XID made the plugin mark it unhealthy (C01, contracts.md 1.9)."""

    node: str
    gpu: int
    xid: int = 48


class SilentAgent(_Situation, frozen=True, kw_only=True, tag="silent-agent"):
    """The agent accepts connections and never answers."""

    node: str


class LyingAgent(_Situation, frozen=True, kw_only=True, tag="lying-agent"):
    """The agent answers wrongly: for another node, no report at all, or without end."""

    node: str
    how: Literal["as-node", "garbage", "huge"]
    as_node: str = ""


class PendingPod(_Situation, frozen=True, kw_only=True, tag="pending-pod"):
    """A pod that asks for more than there is."""

    name: str
    namespace: str = "default"
    resource: str = "nvidia.com/gpu"
    count: int = 64


class ForeignTaint(_Situation, frozen=True, kw_only=True, tag="foreign-taint"):
    """Another writer adds a taint to a node (C20)."""

    node: str
    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class Denied(_Situation, frozen=True, kw_only=True, tag="denied"):
    """The account may not do this (simulated API only): 403, and no by an access review."""

    verb: str
    resource: str  # "pods", "daemonsets.apps", "nodes/status"


Situation = LostCard | UnhealthyCard | SilentAgent | LyingAgent | PendingPod | ForeignTaint | Denied


def parse(text: str) -> list[Situation]:
    """A YAML list of situations. Raises ``msgspec.ValidationError`` naming what is wrong."""
    return msgspec.yaml.decode(text, type=list[Situation])


def read_configmap(value: dict[str, Any]) -> list[Situation]:
    """The situations in a ConfigMap; none when it holds nothing that can be read."""
    text = (value.get("data") or {}).get(DATA_KEY) or "[]"
    try:
        return msgspec.json.decode(text, type=list[Situation])
    except msgspec.DecodeError:
        return []


def to_data(situations: Sequence[Situation]) -> dict[str, str]:
    """The ``data`` of the ConfigMap."""
    return {DATA_KEY: msgspec.json.encode(situations).decode()}
