"""``python -m simulator.api --run-dir DIR [--port N] [--seed N] [--history N]``.

Serves on 127.0.0.1 and writes DIR/kubeconfig (the administrator's) and DIR/simulator.kubeconfig
(the simulated nodes', never denied anything). Stops on SIGINT, SIGTERM and SIGHUP.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import secrets
import sys
from pathlib import Path

from aiohttp import web

from simulator import kubeconfig
from simulator.api.allowlist import load
from simulator.api.app import Api
from simulator.api.kinds import NAMESPACES
from simulator.api.objects import Objects
from simulator.api.store import LOG_LENGTH, Store
from simulator.api.users import ADMINISTRATOR, SIMULATOR
from simulator.control.loop import Controllers
from simulator.processes import stop_signal, tie_to_parent


async def serve(run_dir: Path, port: int, seed: int, history: int) -> None:
    """Serve until a signal comes. Raises ``OSError`` when the port is taken."""
    store = Store(history)
    objects = Objects(store, random.Random(seed))
    for namespace in ("default", "kube-system", "kube-node-lease"):
        objects.create(NAMESPACES, "", {"metadata": {"name": namespace}})
    tokens = {secrets.token_urlsafe(24): user for user in (ADMINISTRATOR, SIMULATOR)}
    api = Api(objects, load(), tokens)
    runner = web.AppRunner(
        api.application(), access_log=None, shutdown_timeout=0.5, handler_cancellation=True
    )
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    server = f"http://127.0.0.1:{runner.addresses[0][1]}"
    for token, user in tokens.items():
        name = "kubeconfig" if user == ADMINISTRATOR else "simulator.kubeconfig"
        kubeconfig.write(run_dir / name, server, user, token)
    controllers = asyncio.create_task(Controllers(objects).run())
    gc.freeze()
    stop = asyncio.create_task(stop_signal())
    await asyncio.wait({stop, controllers}, return_when=asyncio.FIRST_COMPLETED)
    await runner.cleanup()
    if controllers.done():
        controllers.result()


def main() -> None:
    """The command."""
    tie_to_parent()
    parser = argparse.ArgumentParser(prog="python -m simulator.api", description=__doc__)
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--history", type=int, default=LOG_LENGTH, help="changes kept for watches")
    options = parser.parse_args()
    options.run_dir.mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(serve(options.run_dir, options.port, options.seed, options.history))
    except OSError as error:
        sys.exit(f"127.0.0.1 port {options.port}: {error.strerror}")


if __name__ == "__main__":
    main()
