"""The hardware file as the simulated NVML sees it: re-read when it changes, with life in it."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from simulator import hardware
from simulator.hardware import Card, Hardware

WOBBLE_SECONDS = 5


class World:
    """One node's hardware at this moment."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._stamp: tuple[int, int] | None = None
        self._hardware: Hardware | None = None

    @property
    def hardware(self) -> Hardware:
        """The file's content. A call costs one stat while the file stays as it is."""
        stat = os.stat(self._path)
        stamp = (stat.st_mtime_ns, stat.st_ino)
        if self._hardware is None or stamp != self._stamp:
            self._hardware, self._stamp = hardware.read(self._path), stamp
        return self._hardware

    @property
    def cards(self) -> list[Card]:
        """The cards that NVML counts, by index: a card that is gone moves the others up (C25)."""
        return [card for card in self.hardware.cards if not card.absent]

    def utilization_percent(self, card: Card) -> int:
        """The card's mean, give or take its wobble."""
        return max(0, min(100, card.utilization_percent + round(self._wobble(card))))

    def milliwatts(self, card: Card) -> int:
        """The card's mean with a wobble of the same percentage, never above its limit."""
        watts = card.power_watts * (1 + self._wobble(card) / 100)
        return min(round(watts * 1000), card.power_limit_watts * 1000)

    def _wobble(self, card: Card) -> float:
        """Percent between -wobble and +wobble: the same for the same card and 5 seconds."""
        if self.hardware.frozen or not card.wobble_percent:
            return 0.0
        bucket = int(self._clock() // WOBBLE_SECONDS)
        digest = hashlib.blake2b(f"{card.uuid} {bucket}".encode(), digest_size=4).digest()
        return card.wobble_percent * (int.from_bytes(digest) / 0x7FFFFFFF - 1)
