"""Which machine this is: ids that must agree with the Node object's ``status.nodeInfo``."""

from __future__ import annotations

from pathlib import Path


def boot_id(host_root: Path) -> str | None:
    """The kernel's id of this boot, or None where it can't be read."""
    return _line(host_root / "proc/sys/kernel/random/boot_id")


def machine_id(host_root: Path) -> str | None:
    """The machine's id, or None: some images have none."""
    return _line(host_root / "etc/machine-id")


def _line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
