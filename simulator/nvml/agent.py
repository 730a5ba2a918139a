"""A simulated node's agent: the real one on the simulated NVML, with faults of its own."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

from msgspec.structs import replace

from agent.contract.report import Report
from agent.server import AgentConfig, RequestHandler, run
from simulator import nvml
from simulator.nvml.world import World

GARBAGE = b'{"version": 1, "gpus": [{"uuid": "\xff\xfe'
HUGE_CHUNK = b" " * 65536


def run_simulated(config: AgentConfig, hardware_path: Path) -> int:
    """Like ``agent.server.run``, with NVML and faults (``lie``) read from ``hardware_path``."""
    library = nvml.install(hardware_path)
    return run(config, lying_handler(library.world))


def lying_handler(world: World) -> type[RequestHandler]:
    """The agent's request handler, which lies as the hardware file of ``world`` orders."""

    class LyingHandler(RequestHandler):
        def route(self) -> None:
            """Answer, or never: a silent agent takes the request and waits for its end."""
            if "silent" in world.hardware.lie:
                self.close_connection = True
                self.rfile.read(1)
                return
            super().route()

        def send_report(self, report: Report) -> None:
            """Send the report, somebody else's, garbage, or bytes without an end."""
            lie = world.hardware.lie
            if "garbage" in lie:
                self.send_body(HTTPStatus.OK, GARBAGE)
            elif "huge" in lie:
                self._send_without_end()
            else:
                super().send_report(replace(report, node_name=lie.get("as_node", report.node_name)))

        def _send_without_end(self) -> None:
            self.close_connection = True
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            while True:  # until the reader has had enough and hangs up
                self.wfile.write(HUGE_CHUNK)

    return LyingHandler
