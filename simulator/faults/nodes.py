"""What scripted situations do to one node's hardware file."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from simulator.faults.situations import (
    LostCard,
    LyingAgent,
    NotReadyNode,
    SilentAgent,
    Situation,
    UnhealthyCard,
)
from simulator.hardware import Hardware, SimXid


class NodeFaults:
    """The situations of one node. XIDs are numbered once, when their situation begins."""

    def __init__(self, node_name: str) -> None:
        self._node_name = node_name
        self._current: list[Situation] = []
        self._xids: list[SimXid] = []

    def update(self, situations: list[Situation], uuid_of: Callable[[int], str | None]) -> bool:
        """Take over the present situations; True when this node's have changed.

        ``uuid_of``: the uuid of a card by index, None when there is no such card.
        """
        mine = [each for each in situations if getattr(each, "node", "") == self._node_name]
        if mine == self._current:
            return False
        for each in mine:
            if isinstance(each, LostCard | UnhealthyCard) and each not in self._current:
                uuid = uuid_of(each.gpu)
                if uuid is not None:
                    number = len(self._xids) + 1
                    self._xids.append(SimXid(number=number, gpu_uuid=uuid, code=each.xid))
        self._current = mine
        return True

    @property
    def sick_cards(self) -> set[int]:
        """Indexes of the cards that the device plugin marked unhealthy."""
        return {e.gpu for e in self._current if isinstance(e, LostCard | UnhealthyCard)}

    @property
    def not_ready(self) -> bool:
        """Whether the kubelet says that it can run nothing."""
        return any(isinstance(each, NotReadyNode) for each in self._current)

    def put_on(self, hardware: Hardware) -> Hardware:
        """The hardware with its faults."""
        lost = {each.gpu for each in self._current if isinstance(each, LostCard)}
        cards = [
            msgspec.structs.replace(card, lost=True) if card.index in lost else card
            for card in hardware.cards
        ]
        lie: dict[str, str] = {}
        for each in self._current:
            if isinstance(each, SilentAgent):
                lie["silent"] = ""
            elif isinstance(each, LyingAgent):
                lie[each.how.replace("-", "_")] = each.as_node
        return msgspec.structs.replace(hardware, cards=cards, xids=list(self._xids), lie=lie)
