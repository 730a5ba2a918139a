"""The last XIDs, numbered within this agent instance, and the thread that listens for them."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from agent import nvml
from agent.contract.report import Xid
from agent.processes import instance_id

RING_SIZE = 256
# How long one wait in NVML lasts: the longest that letting go of NVML waits for the listener.
WAIT_MILLISECONDS = 500
RETRY_SECONDS = 5.0

log = logging.getLogger("agent")


class _Seen(NamedTuple):
    at: float
    sequence: int
    code: int
    gpu_uuid: str | None
    gpu_instance_id: int | None
    compute_instance_id: int | None


class XidRing:
    """The newest 256 XIDs. It outlives leases: the server takes each number once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: deque[_Seen] = deque(maxlen=RING_SIZE)
        self._listening_since: float | None = None
        self.sequence = 0

    def add(
        self, code: int, gpu_uuid: str | None, gpu_instance: int, compute_instance: int
    ) -> None:
        """Number one XID and keep it."""
        with self._lock:
            self.sequence += 1
            self._seen.append(
                _Seen(
                    self._clock(),
                    self.sequence,
                    code,
                    gpu_uuid,
                    instance_id(gpu_instance),
                    instance_id(compute_instance),
                )
            )

    def listening(self, now: bool) -> None:
        """Note that listening begins or ends: what happens in between is in no ring."""
        self._listening_since = self._clock() if now else None

    def listening_seconds(self) -> float | None:
        """For how long XIDs have been listened for without a gap; None when they are not."""
        since = self._listening_since
        return None if since is None else self._clock() - since

    def newest(self) -> tuple[tuple[Xid, ...], int]:
        """The ring, oldest first, with ages as of now, and the newest number (0: none yet)."""
        with self._lock:
            now = self._clock()
            xids = tuple(
                Xid(
                    sequence=seen.sequence,
                    code=seen.code,
                    gpu_uuid=seen.gpu_uuid,
                    age_seconds=now - seen.at,
                    gpu_instance_id=seen.gpu_instance_id,
                    compute_instance_id=seen.compute_instance_id,
                )
                for seen in self._seen
            )
            return xids, self.sequence


class XidListener:
    """Waits for XIDs while NVML is open. ``stop`` before NVML is shut down."""

    def __init__(self, ring: XidRing, uuid_of_address: dict[int | None, str]) -> None:
        self._ring = ring
        self._uuid_of_address = uuid_of_address
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._event_set: Any = None

    def start(self, handles: list[nvml.Handle]) -> None:
        """Listen to those cards that can tell XIDs; to none is no error (GB10)."""
        self._event_set = nvml.open_xid_events(handles)
        if self._event_set is None:
            return
        self._ring.listening(True)
        self._thread = threading.Thread(target=self._listen, name="xids", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening; returns once nobody waits in NVML any more."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._ring.listening(False)
        if self._event_set is not None:
            nvml.close_events(self._event_set)
            self._event_set = None

    def _listen(self) -> None:
        while not self._stopping.is_set():
            try:
                event = nvml.wait_for_xid(self._event_set, WAIT_MILLISECONDS)
            except (nvml.FieldUnreadableError, nvml.CardLostError) as error:
                log.warning("waiting for XIDs failed: %s", error)
                self._stopping.wait(RETRY_SECONDS)
                continue
            if event is not None:
                self._ring.add(
                    event.eventData,
                    self._uuid_of_address.get(nvml.address(event.device)),
                    event.gpuInstanceId,
                    event.computeInstanceId,
                )
