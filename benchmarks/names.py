"""How the nodes of the poll's benchmark are called, and where their agents are."""

from __future__ import annotations

BOOT = "3c0f6f1e-8c2b-4f7e-9d0a-52b1c0ffee01"


def node_name(number: int) -> str:
    return f"gpu-{number:04d}"


def pod_uid(number: int) -> str:
    return f"00000000-0000-4000-9000-{number:012x}"


def address(number: int) -> str:
    """127.3.0.1 and on."""
    return f"127.3.{number // 250}.{1 + number % 250}"


def number_of(text: str) -> int:
    """The node whose agent is at the address."""
    *_, high, low = text.split(".")
    return int(high) * 250 + int(low) - 1
