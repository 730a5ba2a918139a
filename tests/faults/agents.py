"""Agents in threads of this process: they answer whole reports, when and how they are told."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from agent.contract.report import PORT_NAME, TOKEN_HEADER, Gpu, Report
from agent.contract.token import token_hour
from tests.support.scripted_api import Json, node

NODES = ("n1", "n2", "n3")
BOOT = "b7d6f7a4-0000-4000-8000-00000000000{}"


class Agents:
    """One for each of NODES, at 127.1.0.1 and on. ``delays``: seconds before the node answers."""

    def __init__(self, secret: str) -> None:
        self.secret = secret.encode()
        self.delays: dict[str, float] = {}
        self.asked: list[tuple[float, str]] = []
        self._servers: list[ThreadingHTTPServer] = []

    def __enter__(self) -> Agents:
        for number, name in enumerate(NODES, start=1):
            handler = type("Handler", (_Handler,), {"agents": self, "node": name})
            server = ThreadingHTTPServer((f"127.1.0.{number}", 0), handler)
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self._servers.append(server)
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def asked_since(self, moment: float, name: str = NODES[0]) -> int:
        """How often this node was asked after that moment of `time.monotonic`."""
        return sum(at > moment and who == name for at, who in list(self.asked))

    def nodes(self) -> list[Json]:
        """The Node objects of the machines on which they run."""
        made = [node(name) for name in NODES]
        for number, machine in enumerate(made, start=1):
            machine["status"]["nodeInfo"] = {"bootID": BOOT.format(number)}
        return made

    def pods(self) -> list[Json]:
        """Their pods, of the DaemonSet whose uid is "ds"."""
        owner = {"kind": "DaemonSet", "uid": "ds", "name": "gpuadmin-agent", "controller": True}
        return [
            {
                "metadata": {
                    "name": f"gpuadmin-agent-{name}",
                    "namespace": "gpuadmin",
                    "uid": f"pod-{name}",
                    "ownerReferences": [owner],
                },
                "spec": {
                    "nodeName": name,
                    "containers": [
                        {"name": "a", "ports": [{"name": PORT_NAME, "containerPort": port}]}
                    ],
                },
                "status": {"phase": "Running", "podIP": address},
            }
            for name, server in zip(NODES, self._servers, strict=True)
            for address, port in [server.server_address[:2]]
        ]

    def report(self, name: str) -> Report:
        """Eight cards, of which nothing changes."""
        number = NODES.index(name) + 1
        cards = (
            Gpu(
                index=index,
                uuid=f"GPU-{number:08d}-0000-4000-8000-{index:012d}",
                name="NVIDIA H100 80GB HBM3",
                memory_kind="dedicated",
                memory_total_bytes=80 * 2**30,
                memory_used_bytes=0,
                utilization_percent=0,
            )
            for index in range(8)
        )
        return Report(
            agent_version="1",
            agent_instance=f"instance-{name}",
            sequence=1,
            node_name=name,
            pod_uid=f"pod-{name}",
            sent_at=time.time(),
            boot_id=BOOT.format(number),
            gpus=tuple(cards),
            pods=(),
        )


class _Handler(BaseHTTPRequestHandler):
    agents: Agents
    node: str

    def log_message(self, *_: Any) -> None:
        """Tests print what they have to say themselves."""

    def do_GET(self) -> None:
        token = self.headers.get(TOKEN_HEADER, "")
        genuine = token_hour(self.agents.secret, f"pod-{self.node}", self.node, token) is not None
        self.agents.asked.append((time.monotonic(), self.node))
        time.sleep(self.agents.delays.get(self.node, 0))
        body = msgspec.json.encode(self.agents.report(self.node)) if genuine else b"{}"
        self.send_response(200 if genuine else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
