"""``python -m simulator.ctl --kubeconfig FILE list|apply FILE.yaml|clear [--all]``.

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
    DEMO,
    SCRIPTED,
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


async def present(kube: Kube, key: str = SCRIPTED) -> list[Situation]:
    """What is scripted now, or with DEMO the demo's own trouble."""
    configmap = await _configmap(kube)
    return read_configmap(configmap, key) if configmap else []


async def apply(kube: Kube, situations: list[Situation]) -> None:
    """Add situations to those that are there; one that is there already stays as it is.

    Raises ``ValueError`` for a node that the cluster doesn't have; nothing is begun then.
    """
    await _check_nodes(kube, situations)
    known = await present(kube)
    for each in situations:
        if each not in known:
            await _begin(kube, each)
            known.append(each)
    await _write(kube, to_data(known))


async def clear(kube: Kube, *, demo: bool = False) -> None:
    """End what was scripted: cards come back, pods and taints that ctl made go.

    ``demo``: the demo's own trouble as well.
    """
    keys = (SCRIPTED, DEMO) if demo else (SCRIPTED,)
    for key in keys:
        for each in await present(kube, key):
            await _end(kube, each)
        await _write(kube, to_data([], key))


async def _check_nodes(kube: Kube, situations: list[Situation]) -> None:
    named = {getattr(each, "node", "") for each in situations} - {""}
    if not named:
        return
    there = {each["metadata"]["name"] for each in (await kube.get("/api/v1/nodes"))["items"]}
    if unknown := sorted(named - there):
        raise ValueError(f"there is no node {unknown[0]!r}. There are: {', '.join(sorted(there))}")


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


async def _write(kube: Kube, data: dict[str, str]) -> None:
    known = await _configmap(kube)
    if known:
        data = {**(known.get("data") or {}), **data}
        await kube.update(f"{_CONFIGMAPS}/{_NAME}", {**known, "data": data})
        return
    await kube.create_once("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    await kube.create(_CONFIGMAPS, {"metadata": {"name": _NAME}, "data": data})


async def _run(options: argparse.Namespace) -> None:
    async with Kube(load(options.kubeconfig)) as kube:
        if options.command == "apply":
            await apply(kube, parse(options.file.read_text(encoding="utf-8")))
        elif options.command == "clear":
            await clear(kube, demo=options.all)
        scripted, demo = await present(kube), await present(kube, DEMO)
        sys.stdout.write(_yaml(scripted) or "nothing scripted\n")
        if demo:
            sys.stdout.write("# the demo's own, which only clear --all ends:\n" + _yaml(demo))


def _yaml(situations: list[Situation]) -> str:
    return msgspec.yaml.encode(situations).decode() if situations else ""


def main() -> int:
    """The command: 0, or 2 with one sentence about what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m simulator.ctl", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="what is scripted now")
    commands.add_parser("apply", help="add situations").add_argument("file", type=Path)
    clearing = commands.add_parser("clear", help="end what was scripted")
    clearing.add_argument("--all", action="store_true", help="and the demo's own trouble")
    options = parser.parse_args()
    try:
        asyncio.run(_run(options))
    except (OSError, ValueError, KeyError, KubeError, aiohttp.ClientError) as error:
        sys.stderr.write(f"simulator.ctl: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
