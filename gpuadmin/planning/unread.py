"""Why a field of a card has no value, in words for a person (rule 1; C27, C28)."""

from __future__ import annotations

from collections.abc import Mapping

_REASONS: Mapping[str, str] = {
    "not_supported": "this model does not tell it",
    # contracts.md 1.1: a container needs these two to read cards in MIG mode.
    "no_permission": "the agent may not read it: give its container CAP_SYS_ADMIN and "
    "NVIDIA_MIG_MONITOR_DEVICES=all",
    "gpu_is_lost": "the card fell off the bus while it was read",
    "error": "the driver answered with an error",
}
_ALSO_IN_MIG_MODE = ("utilization_percent", "memory_utilization_percent")


def why_unread(field: str, error: str | None, *, mig: bool, unified: bool) -> str:
    """One clause. ``error`` is the agent's word for it (`agent.contract.report.FieldError`);
    None: the agent gave a value, or a list to add up, that can't be believed.
    """
    if error in ("not_supported", None) and mig and field in _ALSO_IN_MIG_MODE:
        return "not measured in MIG mode"
    if error in ("not_supported", None) and unified and field == "memory_total_bytes":
        return "the memory is shared with the system"
    return _REASONS.get(error or "", "no believable value was reported")
