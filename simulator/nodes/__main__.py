"""``python -m simulator.nodes --kubeconfig FILE --run-dir DIR [--nodes a,b] [--tenants]``.

Simulated GPU nodes on any Kubernetes API. DIR gets each node's hardware file and host tree, and
the file ``nodes.ready`` when all runs. The agents' secret is taken from GPUADMIN_AGENT_SECRET; one
that is in the cluster already wins. Stops on SIGINT, SIGTERM and SIGHUP.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

import aiohttp

from simulator.fleet.inventory import INVENTORY, NodeSpec
from simulator.kubeconfig import Connection, load
from simulator.nodes.agents import AgentProcesses
from simulator.nodes.client import Kube, KubeError
from simulator.nodes.runner import Fleet
from simulator.processes import stop_signal, tie_to_parent

READY = "nodes.ready"
MAX_PATH_BYTES = 107  # of a unix socket
MAX_NAME_BYTES = len("/a100-01.sock")


def chosen(names: str) -> list[tuple[int, NodeSpec]]:
    """The nodes by name with their numbers, all for an empty list. Raises ``ValueError``."""
    numbered = list(enumerate(INVENTORY, 1))
    wanted = [name for name in names.split(",") if name]
    if unknown := set(wanted) - {spec.name for _, spec in numbered}:
        raise ValueError(f"there is no node {', '.join(sorted(unknown))} in the fleet")
    return [entry for entry in numbered if not wanted or entry[1].name in wanted]


def socket_folder(run_dir: Path) -> Path:
    """Where the kubelets' sockets go: beside the rest, unless their paths would be too long."""
    folder = run_dir / "sockets"
    if len(os.fsencode(folder)) + MAX_NAME_BYTES > MAX_PATH_BYTES:
        return Path(tempfile.mkdtemp(prefix="gasim-"))
    folder.mkdir(exist_ok=True)
    return folder


async def _serve(
    connection: Connection, options: argparse.Namespace, sockets: Path, agents: AgentProcesses
) -> None:
    secret = os.environ.get("GPUADMIN_AGENT_SECRET") or secrets.token_urlsafe(32)
    async with Kube(connection) as kube:
        fleet = Fleet(kube, chosen(options.nodes), options.run_dir, sockets, agents)
        ready = options.run_dir / READY
        run = asyncio.create_task(fleet.run(secret, with_tenants=options.tenants, ready=ready))
        stop = asyncio.create_task(stop_signal())
        await asyncio.wait({run, stop}, return_when=asyncio.FIRST_COMPLETED)
        if run.done():
            run.result()
        run.cancel()
        await asyncio.wait({run})


def main() -> int:
    """The command."""
    tie_to_parent()
    parser = argparse.ArgumentParser(prog="python -m simulator.nodes", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--nodes", default="", help="comma list of names; all when empty")
    parser.add_argument("--tenants", action="store_true", help="with the demo's pods and trouble")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    options.run_dir.mkdir(parents=True, exist_ok=True)
    try:
        connection = load(options.kubeconfig)
        chosen(options.nodes)
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"{options.kubeconfig}: {error}\n")
        return 2
    agents = AgentProcesses()  # before the event loop: it forks
    sockets = socket_folder(options.run_dir.absolute())
    try:
        asyncio.run(_serve(connection, options, sockets, agents))
    except (KubeError, aiohttp.ClientConnectionError) as error:
        sys.stderr.write(f"{connection.server}: {error}\n")
        return 1
    finally:
        agents.close()
        shutil.rmtree(sockets, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
