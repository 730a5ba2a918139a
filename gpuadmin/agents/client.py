"""Ask many agents at once: a total deadline, a cap on the body, each answer as it comes.

An agent is not trusted: whatever it sends ends as an `Answer`, never as an exception.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import aiohttp
import msgspec

from agent.contract.report import TOKEN_HEADER, ReleaseRequest, Report, decode_report
from agent.contract.token import make_token

log = logging.getLogger(__name__)
MAX_BODY_BYTES = 1024 * 1024
CONCURRENCY = 512
GATHER_SECONDS = 0.3


class Outcome(StrEnum):
    """What came of asking: the same words as `fleet.models.AgentState.Status`."""

    OK = "ok"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    BAD_ANSWER = "bad_answer"


@dataclass(frozen=True)
class Endpoint:
    """Where one agent is and which pod on which node it must be.

    With ``release`` it is told to let go of NVML before it is asked (C18).
    """

    pod_uid: str
    node_name: str
    address: str
    port: int
    release: ReleaseRequest | None = None


@dataclass(frozen=True)
class Answer:
    """``report`` only with ``Outcome.OK``; otherwise ``reason`` is a sentence."""

    endpoint: Endpoint
    outcome: Outcome
    report: Report | None = None
    reason: str = ""


def ask(
    endpoints: Iterable[Endpoint], *, secret: str, unix_seconds: float, timeout_seconds: float
) -> Iterator[list[Answer]]:
    """One answer per endpoint, in the order of arrival; the slowest takes ``timeout_seconds``.

    They come in handfuls of what arrived within GATHER_SECONDS, so that they may be stored
    together and the early ones at once.

    The asking runs on an event loop of its own thread, so that the caller may store each answer
    with blocking calls while others are still awaited.
    """
    wanted = list(endpoints)
    answers: queue.Queue[Answer] = queue.Queue()
    asking = _ask_all(wanted, answers, secret, unix_seconds, timeout_seconds)
    thread = threading.Thread(target=asyncio.run, args=(asking,), name="ask-agents", daemon=True)
    thread.start()
    missing = len(wanted)
    while missing:
        handful = _handful(answers, missing)
        missing -= len(handful)
        yield handful
    thread.join()


def _handful(answers: queue.Queue[Answer], most: int) -> list[Answer]:
    """At least one answer, and what else comes while it is waited for."""
    found = [answers.get()]
    until = time.monotonic() + GATHER_SECONDS
    while len(found) < most and (left := until - time.monotonic()) > 0:
        try:
            found.append(answers.get(timeout=left))
        except queue.Empty:
            break
    return found


async def _ask_all(
    endpoints: list[Endpoint],
    answers: queue.Queue[Answer],
    secret: str,
    unix_seconds: float,
    timeout_seconds: float,
) -> None:
    # No proxies from the environment, no cookies, no redirects: a token goes where we send it.
    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    timeout = aiohttp.ClientTimeout(total=timeout_seconds)
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
    ) as session:

        async def one(endpoint: Endpoint) -> None:
            key = (secret.encode(), endpoint.pod_uid, endpoint.node_name, unix_seconds)
            try:
                answer = await _ask_one(session, endpoint, make_token(*key), timeout_seconds)
            except Exception as error:  # whatever happens, there is one answer per endpoint
                log.exception("Asking the agent of %s failed", endpoint.node_name)
                reason = f"Asking it failed: {_short(error)}"
                answer = Answer(endpoint, Outcome.UNREACHABLE, reason=reason)
            answers.put(answer)

        await asyncio.gather(*map(one, endpoints))


async def _ask_one(
    session: aiohttp.ClientSession, endpoint: Endpoint, token: str, timeout_seconds: float
) -> Answer:
    host = f"[{endpoint.address}]" if ":" in endpoint.address else endpoint.address
    url = f"http://{host}:{endpoint.port}/v1"
    headers = {TOKEN_HEADER: token}
    try:
        async with asyncio.timeout(timeout_seconds):
            if endpoint.release is not None:
                await _release(session, endpoint, url, headers)
            async with session.get(
                f"{url}/report", headers=headers, allow_redirects=False
            ) as response:
                return await _read(endpoint, response)
    except TimeoutError:
        return Answer(
            endpoint,
            Outcome.UNREACHABLE,
            reason=f"It did not answer whole within {timeout_seconds:g} s.",
        )
    except (aiohttp.ClientError, OSError, ValueError) as error:
        reason = f"It can't be reached at {endpoint.address}:{endpoint.port}: {_short(error)}"
        return Answer(endpoint, Outcome.UNREACHABLE, reason=reason)


async def _release(
    session: aiohttp.ClientSession, endpoint: Endpoint, url: str, headers: dict[str, str]
) -> None:
    """Whether it let go is in the report that follows; a refusal is in our log as well."""
    body = msgspec.json.encode(endpoint.release)
    async with session.post(
        f"{url}/release", data=body, headers=headers, allow_redirects=False
    ) as response:
        if response.status != 200:
            log.warning("Agent of %s: HTTP %d to a release", endpoint.node_name, response.status)


async def _read(endpoint: Endpoint, response: aiohttp.ClientResponse) -> Answer:
    if response.status in (401, 403):
        return Answer(
            endpoint,
            Outcome.REFUSED,
            reason="It refuses our token: its secret and GPUADMIN_AGENT_SECRET differ.",
        )
    if response.status != 200:
        reason = f"It answered HTTP {response.status}."
        return Answer(endpoint, Outcome.BAD_ANSWER, reason=reason)
    body = b""
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            reason = f"It sent more than {MAX_BODY_BYTES // 1024} KiB."
            return Answer(endpoint, Outcome.BAD_ANSWER, reason=reason)
    try:
        return Answer(endpoint, Outcome.OK, report=decode_report(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = f"Its answer is no report: {_short(error)}"
        return Answer(endpoint, Outcome.BAD_ANSWER, reason=reason)


def _short(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:200]
