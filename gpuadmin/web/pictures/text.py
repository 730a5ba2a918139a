"""How values read on a page: ages, sizes, names. Unknown is None and never turned into a number."""

from __future__ import annotations

import re
from collections.abc import Iterable

DASH = "–"
MINUTE, HOUR, DAY = 60, 3600, 86400
GIB = 1024**3
# Terminal sequences, control characters but tab and newline, and what turns the writing around.
_UNPRINTABLE = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
_VENDOR = re.compile(r"^(NVIDIA|Tesla|Quadro)[ -]+", re.I)
_MODEL = re.compile(r"\b(GB\d+|[A-Z]{1,2}\d{1,4}[A-Z]?)\b")


def age(seconds: float) -> str:
    """``8 s``, ``41 m``, ``2 h 14 m``, ``4 d 6 h``; static/js/ages.js ticks in the same words."""
    whole = max(0, int(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} m"
    if whole < DAY:
        return _pair(whole // HOUR, "h", whole % HOUR // MINUTE, "m")
    return _pair(whole // DAY, "d", whole % DAY // HOUR, "h")


def _pair(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big} {big_unit} {small} {small_unit}" if small else f"{big} {big_unit}"


def count(number: int, one: str, many: str | None = None) -> str:
    """``1 node``, ``12 nodes``, ``1 000 nodes``."""
    word = one if number == 1 else many or one + "s"
    return f"{thousands(number)} {word}"


def thousands(number: int) -> str:
    """Digits in groups, parted by a narrow no-break space."""
    return f"{number:,}".replace(",", "\u202f")


def gigabytes(used: int | None, total: int | None) -> str:
    """Memory in GiB, as ``72.9/80 GB``; a part that is unknown is a dash."""
    return f"{_gib(used)}/{_gib(total)} GB"


def _gib(size: int | None) -> str:
    if size is None:
        return DASH
    value = size / GIB
    return f"{value:.1f}" if value < 10 and value != int(value) else f"{value:.0f}"


def percent(part: int | None, whole: int | None) -> int | None:
    """A share in whole percent; None when either is unknown."""
    if part is None or not whole:
        return None
    return min(100, round(100 * part / whole))


def full_model(name: str) -> str:
    """A product's name without the vendor: ``H100 80GB HBM3``."""
    return _VENDOR.sub("", name.replace("-", " ")).strip()


def short_model(name: str) -> str:
    """The part that people say: ``H100``, ``L40S``, ``GB10``; the whole name when there is none."""
    match = _MODEL.search(full_model(name))
    return match[1] if match else full_model(name)


def short_uuid(uuid: str) -> str:
    """``3fe1…9a07``: the ends are enough to compare with nvidia-smi."""
    bare = uuid.removeprefix("GPU-").removeprefix("MIG-")
    return f"{bare[:4]}…{bare[-4:]}" if len(bare) > 9 else bare


def plain(text: str) -> str:
    """Text of the cluster without terminal colours and control characters."""
    return _UNPRINTABLE.sub("", text)


def first_sentence(text: str) -> str:
    """Up to the first full stop that ends a sentence."""
    return plain(text).strip().split(". ", 1)[0].rstrip(".")


def and_list(words: Iterable[str], most: int = 3) -> str:
    """``a, b and 4 more``."""
    found = list(words)
    if len(found) <= most:
        return ", ".join(found)
    return ", ".join(found[:most]) + f" and {len(found) - most} more"
