"""Putting one report together: NVML under its lease, the kubelet, the host."""

from __future__ import annotations

import itertools
import time
import uuid
from typing import Any

from agent import __version__, host, nvml
from agent.cards import CardReader
from agent.config import AgentConfig
from agent.contract.report import PodDevices, Report
from agent.lease import Lease, PausedError, UnresponsiveError
from agent.podresources import KubeletError, held_devices, list_pods
from agent.processes import ProcessReader
from agent.session import NvmlSession
from agent.xids import XidRing


class Reporter:
    """Answers reports and releases for one node. ``stop`` lets go of NVML for good."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self.instance = uuid.uuid4().hex
        self._sequence = itertools.count(1)
        self._ring = XidRing()
        self._last: tuple[float, Report] | None = None  # by the monotonic clock
        proc = config.host_root / "proc" if config.host_pid else None
        self._cards = CardReader(ProcessReader(proc))
        self._lease = Lease(
            lambda: NvmlSession(self._cards, self._ring), seconds=config.lease_seconds
        )

    def report(self) -> Report:
        """The report of this moment; whatever fails is a state or a sentence in it."""
        deadline = time.monotonic() + self._config.read_seconds
        reading = self._read_nvml()
        pods, pods_error = self._read_pods(max(0.2, deadline - time.monotonic()))
        xids, xid_sequence = self._ring.newest()
        report = Report(
            agent_version=__version__,
            agent_instance=self.instance,
            sequence=next(self._sequence),
            node_name=self._config.node_name,
            pod_uid=self._config.pod_uid,
            sent_at=time.time(),
            boot_id=host.boot_id(self._config.host_root),
            machine_id=host.machine_id(self._config.host_root),
            pods=pods,
            pods_error=pods_error,
            xids=xids,
            xid_sequence=xid_sequence,
            xids_from=self._ring.listening_seconds(),
            **reading,
        )
        if report.state == "ok":
            self._last = (time.monotonic(), report)
        return report

    def last_reading(self) -> tuple[Report | None, float]:
        """The last report that has a reading, and its age in seconds; None before the first."""
        last = self._last
        return (None, 0.0) if last is None else (last[1], time.monotonic() - last[0])

    def release(self, seconds: int, reason: str) -> None:
        """Let go of NVML for ``seconds``. Raises as ``Lease.release`` when it is still held."""
        self._lease.release(seconds, reason, self._config.read_seconds)

    def stop(self) -> bool:
        """Let go of NVML for good; False when NVML hangs."""
        return self._lease.stop(self._config.read_seconds)

    def _read_nvml(self) -> dict[str, Any]:
        try:
            reading = self._lease.read(self._config.read_seconds)
        except PausedError as paused:
            return {"state": "paused", "reason": str(paused)}
        except (UnresponsiveError, nvml.NvmlError) as error:
            return {"state": "error", "reason": str(error)}
        return {
            "driver_version": reading.driver_version,
            "nvml_version": reading.nvml_version,
            "cuda_version": reading.cuda_version,
            "gpus": reading.gpus,
        }

    def _read_pods(self, timeout: float) -> tuple[tuple[PodDevices, ...] | None, str | None]:
        try:
            answer = list_pods(self._config.kubelet_socket, timeout)
        except KubeletError as error:
            return None, str(error)
        return held_devices(answer, self._cards.uuid_of_index), None
