"""The vocabulary of scripted situations, and the ConfigMap in which they travel.

Simulated nodes and the simulated API watch that ConfigMap, so that a situation works the same way
on a real API server (design.md section 9).
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

NAMESPACE = "gpuadmin-sim"
CONFIGMAP_KEY = (NAMESPACE, "situations")
SCRIPTED, DEMO = "situations.json", "demo.json"  # what people scripted, and the demo's own trouble


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


class NotReadyNode(_Situation, frozen=True, kw_only=True, tag="not-ready-node"):
    """The kubelet says that its container runtime is down: the node is NotReady."""

    node: str


class ApiSituation(_Situation, frozen=True, kw_only=True):
    """A bad day of the simulated API server, for one verb and resource or ("") for all.

    Simulated nodes and ctl's own ConfigMap are spared, so that it can be ended.
    """

    verb: str = ""
    resource: str = ""  # "pods", "daemonsets.apps"


class SlowApi(ApiSituation, frozen=True, kw_only=True, tag="slow-api"):
    """Each answer comes this much later."""

    seconds: float = 2.0


class FailingApi(ApiSituation, frozen=True, kw_only=True, tag="failing-api"):
    """Each request is refused, with Retry-After where it is given."""

    code: Literal[429, 500, 503] = 500
    retry_after_seconds: int = 0


class DroppedConnections(ApiSituation, frozen=True, kw_only=True, tag="dropped-connections"):
    """Each connection is cut without an answer."""


class SilentWatches(ApiSituation, frozen=True, kw_only=True, tag="silent-watches"):
    """Watches are taken and never speak again, nor end: a connection that is half open."""


Situation = (
    LostCard
    | UnhealthyCard
    | SilentAgent
    | LyingAgent
    | PendingPod
    | ForeignTaint
    | NotReadyNode
    | Denied
    | SlowApi
    | FailingApi
    | DroppedConnections
    | SilentWatches
)
KINDS: tuple[str, ...] = tuple(str(each.__struct_config__.tag) for each in Situation.__args__)


def parse(text: str) -> list[Situation]:
    """A YAML list of situations. Raises ``msgspec.ValidationError`` naming what is wrong."""
    try:
        return msgspec.yaml.decode(text, type=list[Situation])
    except msgspec.ValidationError:
        for entry in _entries(text):
            if "kind" in entry and entry["kind"] not in KINDS:
                raise msgspec.ValidationError(_unknown_kind(str(entry["kind"]))) from None
        raise


def read_configmap(value: dict[str, Any], *keys: str) -> list[Situation]:
    """The situations under these keys, all of them without any; none of what can't be read."""
    found: list[Situation] = []
    for key in keys or (DEMO, SCRIPTED):
        with contextlib.suppress(msgspec.DecodeError):
            text = (value.get("data") or {}).get(key) or "[]"
            found += msgspec.json.decode(text, type=list[Situation])
    return found


def to_data(situations: Sequence[Situation], key: str = SCRIPTED) -> dict[str, str]:
    """An entry for the ``data`` of the ConfigMap."""
    return {key: msgspec.json.encode(situations).decode()}


def _entries(text: str) -> list[dict[str, Any]]:
    found = msgspec.yaml.decode(text)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _unknown_kind(kind: str) -> str:
    near = difflib.get_close_matches(kind, KINDS, n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    return f"there is no situation {kind!r}.{meant} There are: {', '.join(sorted(KINDS))}"
