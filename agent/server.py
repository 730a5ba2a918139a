"""The agent's door: GET /v1/report, POST /v1/release, GET /metrics and /healthz on port 9477."""

from __future__ import annotations

import logging
import signal
import threading
from http import HTTPStatus

import msgspec

from agent import metrics, nvml
from agent.config import AgentConfig
from agent.contract.report import MAX_RELEASE_SECONDS, TOKEN_HEADER, ReleaseRequest, Report
from agent.gate import TokenGate
from agent.jsonhttp import BadRequestError, BoundedServer, JsonHandler
from agent.lease import UnresponsiveError
from agent.reporter import Reporter

__all__ = ["AgentConfig", "AgentServer", "RequestHandler", "run"]

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
ROUTES = {"/v1/report": "GET", "/v1/release": "POST", "/metrics": "GET", "/healthz": "GET"}
POLL_SECONDS = 3600.0  # serve_forever need not look around: shutdown wakes it
MAX_REASON_LENGTH = 500

log = logging.getLogger("agent")


class RequestHandler(JsonHandler):
    """Routes of the agent."""

    server: AgentServer

    def route(self) -> None:
        """Answer a known route, with a token everywhere but on /healthz and /metrics."""
        path = self.path.partition("?")[0]
        method = ROUTES.get(path)
        if method is None:
            raise BadRequestError(HTTPStatus.NOT_FOUND, "There is no such route.")
        if method != self.command:
            raise BadRequestError(HTTPStatus.METHOD_NOT_ALLOWED, f"This route takes only {method}.")
        if path == "/healthz":
            self.send_json(
                HTTPStatus.OK, {"status": "ok", "instance": self.server.reporter.instance}
            )
            return
        if path == "/metrics":
            text = metrics.exposition(*self.server.reporter.last_reading())
            self.send_body(HTTPStatus.OK, text.encode(), metrics.CONTENT_TYPE)
            return
        self._check_token()
        if path == "/v1/report":
            self.send_report(self.server.reporter.report())
        else:
            self._release()

    def send_report(self, report: Report) -> None:
        """Answer a report."""
        self.send_json(HTTPStatus.OK, report)

    def _check_token(self) -> None:
        if not self.server.gate.admits(self.headers.get(TOKEN_HEADER, "")):
            message = f"The token in {TOKEN_HEADER} is missing, old, or not for this pod and node."
            raise BadRequestError(HTTPStatus.UNAUTHORIZED, message)
        self.server.trust(self.connection)

    def _release(self) -> None:
        request = _release_request(self.body())
        try:
            self.server.reporter.release(request.seconds, request.reason)
        except (UnresponsiveError, nvml.NvmlError) as error:
            raise BadRequestError(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from error
        self.send_json(HTTPStatus.OK, {"state": "paused", "seconds": request.seconds})


class AgentServer(BoundedServer):
    """The agent of one node, listening from its making on and served by ``start``."""

    def __init__(self, config: AgentConfig, handler: type[RequestHandler] = RequestHandler) -> None:
        """Listen. Raises ``OSError`` when the address can't be had."""
        super().__init__(config.bind, config.port, handler)
        self.gate = TokenGate(config)
        self.reporter = Reporter(config)

    def start(self) -> None:
        """Serve in a thread of its own."""
        threading.Thread(
            target=self.serve_forever, args=(POLL_SECONDS,), name="http", daemon=True
        ).start()

    def stop(self) -> bool:
        """Stop serving and let go of NVML; False when NVML hangs."""
        self.shutdown()
        self.server_close()
        return self.reporter.stop()


def run(config: AgentConfig, handler: type[RequestHandler] = RequestHandler) -> int:
    """Serve until SIGTERM or SIGINT; the exit status: 0, or 1 when it couldn't start or let go.

    Touches nothing global before it is called, so that agents can be forked from a warm parent.
    """
    # Blocked before any thread exists, the signals wait for sigwait: no handler, no polling.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        server = AgentServer(config, handler)
    except OSError as error:
        log.error("can't listen on %s port %s: %s", config.bind, config.port, error.strerror)  # noqa: TRY400
        return 1
    server.start()
    log.info("serving %s on %s port %s", config.node_name, config.bind, config.port)
    signal.sigwait(STOP_SIGNALS)
    let_go = server.stop()
    if not let_go:
        log.error("NVML hangs: leaving without closing it")
    return 0 if let_go else 1


def _release_request(body: bytes) -> ReleaseRequest:
    try:
        request = msgspec.json.decode(body, type=ReleaseRequest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"The body is no release request: {error}."
        raise BadRequestError(HTTPStatus.BAD_REQUEST, message) from error
    if not 1 <= request.seconds <= MAX_RELEASE_SECONDS:
        message = f"seconds must be from 1 to {MAX_RELEASE_SECONDS}."
        raise BadRequestError(HTTPStatus.BAD_REQUEST, message)
    if not 1 <= len(request.reason) <= MAX_REASON_LENGTH:
        message = f"reason must have from 1 to {MAX_REASON_LENGTH} characters."
        raise BadRequestError(HTTPStatus.BAD_REQUEST, message)
    return request
