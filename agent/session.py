"""NVML held open: from one initialise to one shutdown, with XIDs listened for in between."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from agent import nvml
from agent.cards import CardReader
from agent.contract.report import Gpu
from agent.fields import Fields
from agent.xids import XidListener, XidRing

log = logging.getLogger("agent")


class NodeReading(msgspec.Struct, frozen=True, kw_only=True):
    """What NVML says about the node at one moment."""

    driver_version: str | None
    nvml_version: str | None
    cuda_version: str | None  # "13.0"
    gpus: tuple[Gpu, ...]


class NvmlSession:
    """One opened NVML. Make it, read it and close it in one and the same thread."""

    def __init__(self, cards: CardReader, ring: XidRing) -> None:
        """Raises ``nvml.NvmlError``; NVML is closed then."""
        nvml.initialise()
        self._cards = cards
        try:
            handles = _handles()
            uuids = {nvml.address(handle): uuid for handle, uuid in handles if uuid is not None}
            self._listener = XidListener(ring, uuids)
            self._listener.start([handle for handle, _ in handles])
        except (nvml.FieldUnreadableError, nvml.CardLostError) as error:
            log.warning("XIDs can't be listened for: %s", error)  # the readings matter more
        except BaseException:
            nvml.shutdown()
            raise

    def read(self) -> NodeReading:
        """Read everything once. Raises ``nvml.NvmlError`` when the library answers nothing."""
        cuda = _system("nvmlSystemGetCudaDriverVersion")
        return NodeReading(
            driver_version=_system("nvmlSystemGetDriverVersion"),
            nvml_version=_system("nvmlSystemGetNVMLVersion"),
            cuda_version=None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
            gpus=self._cards.read_all(),
        )

    def close(self) -> None:
        """Let go of NVML, whatever the listener says. Raises ``nvml.NvmlError``."""
        try:
            self._listener.stop()
        except (nvml.FieldUnreadableError, nvml.CardLostError) as error:
            log.warning("the XID event set can't be freed: %s", error)
        finally:
            nvml.shutdown()


def _handles() -> list[tuple[nvml.Handle, str | None]]:
    handles = []
    for index in range(nvml.device_count()):
        try:
            handle = nvml.call("nvmlDeviceGetHandleByIndex", index)
            handles.append((handle, Fields(handle).read("uuid", "nvmlDeviceGetUUID")))
        except (nvml.FieldUnreadableError, nvml.CardLostError):
            continue  # a lost card is an entry of the reading, and tells no XIDs
    return handles


def _system(name: str) -> Any | None:
    try:
        return nvml.call(name)
    except (nvml.FieldUnreadableError, nvml.CardLostError):
        return None
