"""A thousand agent addresses in one process: bodies as the real agent renders them.

``python -m benchmarks.agents --nodes 1000 --hanging 20`` prints ``ready: PORT``. Node N is at
``address(N)``. One real agent on the simulated NVML renders a report of eight cards twice, with
other readings; each node's answers are these two in turn, under its own names.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

import msgspec

from agent.contract.report import Report
from benchmarks.names import BOOT, node_name, number_of, pod_uid
from tests.agent.door import Door
from tests.agent.world import card, node

CARDS = 8


def rendered() -> list[Report]:
    """Two reports of one node, which differ in readings alone."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        boot = folder / "proc/sys/kernel/random/boot_id"
        boot.parent.mkdir(parents=True)
        boot.write_text(BOOT)
        door = Door(folder, node(*(card(index) for index in range(CARDS))))
        try:
            found = []
            for heat in (55, 56):
                for index in range(CARDS):
                    door.change(
                        index, temperature_celsius=heat + index, utilization_percent=heat + index
                    )
                found.append(door.report())
            return found
        finally:
            door.close()


def answers(number: int, reports: list[Report]) -> list[bytes]:
    """Whole HTTP answers of one node."""
    found = []
    for report in reports:
        gpus = tuple(
            msgspec.structs.replace(gpu, uuid=f"GPU-{number:08x}-0000-4000-8000-{gpu.index:012x}")
            for gpu in report.gpus
        )
        own = msgspec.structs.replace(
            report,
            node_name=node_name(number),
            pod_uid=pod_uid(number),
            gpus=gpus,
            pods=(),
            pods_error=None,
            xids_from=None,
        )
        body = msgspec.json.encode(own)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        found.append(f"{head}\r\n\r\n".encode() + body)
    return found


async def serve(nodes: int, hanging: int) -> None:
    """Until the process is ended. The last ``hanging`` nodes accept and never answer."""
    reports = rendered()
    told = [answers(number, reports) for number in range(nodes)]
    asked = [0] * nodes

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = number_of(writer.get_extra_info("sockname")[0])
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                if number >= nodes - hanging:
                    await asyncio.sleep(3600)
                writer.write(told[number][asked[number] % len(reports)])
                asked[number] += 1
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "0.0.0.0", 0, backlog=2048)  # noqa: S104 - 127/8
    print(f"ready: {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--nodes", type=int, default=1000)
    options.add_argument("--hanging", type=int, default=0)
    chosen = options.parse_args()
    asyncio.run(serve(chosen.nodes, chosen.hanging))


if __name__ == "__main__":
    main()
