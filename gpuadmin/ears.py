"""A worker that has gone deaf ends, so that whoever supervises it starts another one (C43).

After the queue restarts, a worker may have connected again and yet take nothing more: Celery's
consumer waits on a connection that is none. Its process, port and pid look well for ever. So each
worker watches that what waits in its queues is what it takes.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

LOOK_SECONDS = 2.0
DEAF_SECONDS = 6.0  # how long a message may wait for a worker that has a hand free
LAST_WORK_SECONDS = 30.0  # what its running tasks have to end in
log = logging.getLogger(__name__)


def queue_at(url: str, *, seconds: float = 0.5) -> Redis:
    """A connection of its own, tried once: one of a pool could be a stale one."""
    return Redis.from_url(url, socket_timeout=seconds, retry=Retry(NoBackoff(), 0))


class Ears:
    """Whether a worker still hears. ``waiting`` tells how many messages wait, ``busy`` whether it
    has no hand free; ``waiting`` may raise as Redis does, which is nobody's deafness.
    """

    def __init__(
        self,
        waiting: Callable[[], int],
        busy: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._waiting, self._busy, self._clock = waiting, busy, clock
        self._well_at = clock()

    def heard(self, **_: object) -> None:
        """A message came (Celery's signal `task_received`)."""
        self._well_at = self._clock()

    def deaf(self) -> bool:
        """Whether messages have waited for DEAF_SECONDS of which it took none."""
        try:
            well = self._busy() or not self._waiting()
        except (RedisError, OSError):
            well = True
        if well:
            self._well_at = self._clock()
        return self._clock() - self._well_at > DEAF_SECONDS


def watch(ears: Ears) -> None:
    """Look from a thread of its own until the worker is deaf; then end this process."""
    threading.Thread(target=_watch, args=(ears,), name="ears", daemon=True).start()


def _watch(ears: Ears) -> None:
    while not ears.deaf():
        time.sleep(LOOK_SECONDS)
    log.error("Messages wait and none comes here: this worker ends, to be started anew.")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LAST_WORK_SECONDS)
    os._exit(1)  # deaf to its own end, too: leases of operations bring its work to another one
