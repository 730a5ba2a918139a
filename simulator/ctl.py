"""``python -m simulator.ctl --kubeconfig FILE list|apply FILE.yaml|clear``.

Scripts what goes wrong, on our API or a real one. The vocabulary is in simulator/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import aiohttp
import msgspec

from simulator.faults.situations import (
    CONFIGMAP_KEY,
    ForeignTaint,
    PendingPod,
    Situation,
    parse,
    read_configmap,
    to_data,
)
from simulator.kubeconfig import load
from simulator.nodes.client import Kube, KubeError, Value

_NAMESPACE, _NAME = CONFIGMAP_KEY
_CONFIGMAPS = f"/api/v1/namespaces/{_NAMESPACE}/configmaps"
_ATTEMPTS = 5  # at a write that somebody else got ahead of


async def present(kube: Kube) -> list[Situation]:
    """What is scripted now."""
    configmap = await _configmap(kube)
    return read_configmap(configmap) if configmap else []


async def apply(kube: Kube, situations: list[Situation]) -> None:
    """Add situations to those that are there; one that is there already stays as it is."""
    known = await present(kube)
    for each in situations:
        if each not in known:
            await _begin(kube, each)
            known.append(each)
    await _write(kube, known)


async def clear(kube: Kube) -> None:
    """End all situations: cards come back, pods and taints that ctl made go."""
    for each in await present(kube):
        await _end(kube, each)
    await _write(kube, [])


async def _begin(kube: Kube, situation: Situation) -> None:
    """What ctl itself does; all else is done by those who watch the ConfigMap."""
    if isinstance(situation, PendingPod):
        await kube.create_once(
            f"/api/v1/namespaces/{situation.namespace}/pods", _pending_pod(situation)
        )
    elif isinstance(situation, ForeignTaint):
        await _edit_taints(kube, situation, add=True)


async def _end(kube: Kube, situation: Situation) -> None:
    if isinstance(situation, PendingPod):
        path = f"/api/v1/namespaces/{situation.namespace}/pods/{situation.name}"
        await kube.delete(path, grace=0)
    elif isinstance(situation, ForeignTaint):
        await _edit_taints(kube, situation, add=False)


async def _edit_taints(kube: Kube, taint: ForeignTaint, *, add: bool) -> None:
    """Read, change this one taint, write against the version read (contracts.md 9.1)."""
    path = f"/api/v1/nodes/{taint.node}"
    for attempt in range(_ATTEMPTS):
        node = await kube.get(path)
        others = [
            each
            for each in node["spec"].get("taints") or []
            if (each["key"], each["effect"]) != (taint.key, taint.effect)
        ]
        own = [{"key": taint.key, "value": taint.value, "effect": taint.effect}] if add else []
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        try:
            await kube.patch(path, {"metadata": version, "spec": {"taints": [*others, *own]}})
            return
        except KubeError as error:
            if error.code != 409 or attempt == _ATTEMPTS - 1:
                raise


def _pending_pod(situation: PendingPod) -> Value:
    limits = {situation.resource: str(situation.count)}
    container = {
        "name": "main",
        "image": "lab.example/train:24.11",
        "resources": {"limits": limits},
    }
    return {"metadata": {"name": situation.name}, "spec": {"containers": [container]}}


async def _configmap(kube: Kube) -> Value | None:
    try:
        return await kube.get(f"{_CONFIGMAPS}/{_NAME}")
    except KubeError as error:
        if error.code == 404:
            return None
        raise


async def _write(kube: Kube, situations: list[Situation]) -> None:
    known = await _configmap(kube)
    if known:
        await kube.update(f"{_CONFIGMAPS}/{_NAME}", {**known, "data": to_data(situations)})
        return
    await kube.create_once("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    await kube.create(_CONFIGMAPS, {"metadata": {"name": _NAME}, "data": to_data(situations)})


async def _run(options: argparse.Namespace) -> None:
    async with Kube(load(options.kubeconfig)) as kube:
        if options.command == "apply":
            await apply(kube, parse(options.file.read_text(encoding="utf-8")))
        elif options.command == "clear":
            await clear(kube)
        listed = await present(kube)
        sys.stdout.write(msgspec.yaml.encode(listed).decode() if listed else "nothing scripted\n")


def main() -> int:
    """The command: 0, or 2 with one sentence about what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m simulator.ctl", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="what is scripted now")
    commands.add_parser("apply", help="add situations").add_argument("file", type=Path)
    commands.add_parser("clear", help="end all situations")
    options = parser.parse_args()
    try:
        asyncio.run(_run(options))
    except (OSError, ValueError, KeyError, KubeError, aiohttp.ClientError) as error:
        sys.stderr.write(f"simulator.ctl: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
