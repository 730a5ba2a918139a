"""NVML is held open under a lease (C18): reports renew it, a release ends it for a while.

One thread of its own makes every NVML call except the wait for XIDs. So opening, reading and
closing never cross, a call that hangs can't hang the server, and nothing wakes up in between.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from agent import nvml
from agent.session import NodeReading

log = logging.getLogger("agent")


class Session(Protocol):
    """NVML held open: made open, read any number of times, closed once."""

    def read(self) -> NodeReading: ...

    def close(self) -> None: ...


class PausedError(Exception):
    """We let go of NVML on request; the message is the reason given with the release."""


class UnresponsiveError(Exception):
    """NVML has not answered in time. The message is one sentence for a person."""


class _Job(NamedTuple):
    run: Callable[[], NodeReading | None]
    answer: Future[NodeReading | None]


class Lease:
    """Owns the session. All methods may be called from any thread."""

    def __init__(
        self,
        open_session: Callable[[], Session],
        *,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_session = open_session
        self._seconds = seconds
        self._clock = clock
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._busy_since: float | None = None
        self._pause = (0.0, "")  # until when, why
        # What follows is touched by the owner thread only.
        self._session: Session | None = None
        self._until = 0.0
        self._owner = threading.Thread(target=self._own, name="nvml", daemon=True)
        self._owner.start()

    def read(self, timeout: float) -> NodeReading:
        """Open NVML if need be, read it, and renew the lease.

        Raises ``PausedError``, ``UnresponsiveError`` after ``timeout`` seconds, ``nvml.NvmlError``.
        """
        self._refuse_if_stuck(timeout)
        until, reason = self._pause
        if self._clock() < until:
            raise PausedError(reason)
        reading = self._run(self._read, timeout)
        if reading is None:  # released while this request was waiting its turn
            raise PausedError(self._pause[1])
        return reading

    def release(self, seconds: float, reason: str, timeout: float) -> None:
        """Let go of NVML now and stay away for ``seconds``; a later release sets the window anew.

        Returns once NVML is closed. Raises ``UnresponsiveError`` when it is still held, and
        ``nvml.NvmlError`` when it can't be closed.
        """
        self._pause = (self._clock() + seconds, reason)
        self._run(self._close, timeout)

    def stop(self, timeout: float) -> bool:
        """Let go for good; False when NVML didn't let go of us within ``timeout`` seconds."""
        self._pause = (float("inf"), "the agent is stopping")
        self._jobs.put(None)
        self._owner.join(timeout)
        return not self._owner.is_alive()

    def _refuse_if_stuck(self, timeout: float) -> None:
        """No queue of requests behind a call that hangs, and no "paused" while it is held."""
        since = self._busy_since
        if since is not None and self._clock() - since > timeout:
            raise self._unresponsive(since)

    def _run(self, run: Callable[[], NodeReading | None], timeout: float) -> NodeReading | None:
        self._refuse_if_stuck(timeout)
        job = _Job(run, Future())
        asked_at = self._clock()
        self._jobs.put(job)
        try:
            return job.answer.result(timeout)
        except TimeoutError:
            job.answer.cancel()
            raise self._unresponsive(self._busy_since or asked_at) from None

    def _unresponsive(self, since: float) -> UnresponsiveError:
        seconds = f"{self._clock() - since:.1f} s"
        if self._session is None:
            return UnresponsiveError(
                f"NVML is still being opened after {seconds}: without persistence mode that takes "
                "seconds per GPU; if it never ends, read the node's kernel log."
            )
        return UnresponsiveError(
            f"NVML has not answered for {seconds}: a GPU or the driver may hang; read the node's "
            "kernel log, then drain and reboot the node."
        )

    def _own(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._seconds_left())
            except queue.Empty:
                self._close_quietly("the lease ran out")
                continue
            if job is None:
                self._close_quietly("the agent is stopping")
                return
            if job.answer.set_running_or_notify_cancel():
                self._do(job)
            if self._session is not None and self._clock() < self._pause[0]:
                self._close_quietly("released while a call hung")

    def _do(self, job: _Job) -> None:
        self._busy_since = self._clock()
        try:
            job.answer.set_result(job.run())
        except Exception as error:  # it goes to whoever asked
            job.answer.set_exception(error)
        finally:
            self._busy_since = None

    def _seconds_left(self) -> float | None:
        return None if self._session is None else max(0.0, self._until - self._clock())

    def _read(self) -> NodeReading | None:
        if self._clock() < self._pause[0]:
            return None
        if self._session is None:
            self._session = self._open_session()
            log.info("NVML is open")
        try:
            reading = self._session.read()
        except nvml.NvmlError:
            self._close_quietly("NVML answers nothing")  # the next report opens it afresh
            raise
        self._until = self._clock() + self._seconds
        return reading

    def _close(self) -> None:
        if self._session is None:
            return
        try:
            self._session.close()
        finally:
            self._session = None
        log.info("NVML is closed")

    def _close_quietly(self, why: str) -> None:
        if self._session is None:
            return
        log.info("letting go of NVML: %s", why)
        try:
            self._close()
        except nvml.NvmlError as error:
            log.warning("%s", error)
