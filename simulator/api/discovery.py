"""What kubectl asks before it asks for anything: groups, resources, version."""

from __future__ import annotations

from typing import Any

from simulator.api.allowlist import AllowList
from simulator.api.kinds import KINDS

GIT_VERSION = "v1.36.1-gpuadmin-sim"  # how the product knows that a cluster is simulated
VERSION = {"major": "1", "minor": "36", "gitVersion": GIT_VERSION, "platform": "linux/amd64"}


def answer(parts: list[str], allowed: AllowList) -> dict[str, Any] | str | None:
    """The document at a discovery path, plain text for the health paths, None for any other."""
    found: dict[str, Any] | str | None = None
    match parts:
        case ["version"]:
            found = VERSION
        case ["healthz" | "livez" | "readyz"]:
            found = "ok"
        case ["api"]:
            found = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(name) for name in sorted({k.group for k in KINDS if k.group})]
            found = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["api", version]:
            found = _resources("", version, allowed)
        case ["apis", group, version]:
            found = _resources(group, version, allowed)
    return found


def _group(name: str) -> dict[str, Any]:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _resources(group: str, version: str, allowed: AllowList) -> dict[str, Any] | None:
    entries: list[dict[str, Any]] = []
    for kind in KINDS:
        if (kind.group, kind.version) != (group, version):
            continue
        entry = {"namespaced": kind.namespaced, "kind": kind.kind, "singularName": ""}
        for sub, verbs in allowed.verbs(kind.resource).items():
            name = f"{kind.plural}/{sub}" if sub else kind.plural
            own = (
                {"group": "policy", "version": "v1", "kind": "Eviction"}
                if sub == "eviction"
                else {}
            )
            named = {"name": name, "verbs": verbs, "shortNames": list(kind.short)}
            entries.append(entry | named | own)
    if not entries:
        return None
    head = {"kind": "APIResourceList", "apiVersion": "v1", "resources": entries}
    return head | {"groupVersion": f"{group}/{version}" if group else version}
