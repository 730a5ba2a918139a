"""nvidia-smi as a container sees it: only the cards and slices that its pod holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simulator.hardware import Card, Hardware

GPU_IS_LOST = 15  # nvidia-smi ends with NVML's code
INVALID = 2
_MIB = 1024 * 1024
_QUERY, _FORMAT = "--query-gpu=", "--format="
_FIELDS: dict[str, tuple[str, Callable[[Card], object]]] = {  # field → unit, value
    "index": ("", lambda card: card.index),
    "name": ("", lambda card: card.name),
    "uuid": ("", lambda card: card.uuid),
    "serial": ("", lambda card: card.serial),
    "pci.bus_id": ("", lambda card: card.pci_bus_id),
    "memory.total": (" MiB", lambda card: card.memory_total_bytes // _MIB),
    "memory.used": (" MiB", lambda card: card.memory_used_bytes // _MIB),
    "utilization.gpu": (" %", lambda card: card.utilization_percent),
    "temperature.gpu": ("", lambda card: card.temperature_celsius),
}


def run(
    arguments: Sequence[str], hardware: Hardware, held: Sequence[tuple[int, str]]
) -> tuple[int, str]:
    """(exit code, output). ``held``: card index and uuid of each device of the pod."""
    indexes, uuids = {index for index, _ in held}, {uuid for _, uuid in held}
    cards = [card for card in hardware.cards if card.index in indexes and not card.absent]
    for card in cards:
        if card.lost:
            text = f"Unable to determine the device handle for GPU{card.index}: {card.pci_bus_id}: "
            return GPU_IS_LOST, f"{text}GPU is lost.  Reboot the system to recover this GPU\n"
    match arguments:
        case []:
            return 0, _summary(hardware, cards)
        case ["-L"]:
            return 0, "".join(_listed(number, card, uuids) for number, card in enumerate(cards))
        case [query, form] if query.startswith(_QUERY) and form.startswith(f"{_FORMAT}csv"):
            return _csv(query.removeprefix(_QUERY).split(","), form.split(",")[1:], cards)
    return INVALID, "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n"


def _listed(number: int, card: Card, uuids: set[str]) -> str:
    lines = [f"GPU {number}: {card.name} (UUID: {card.uuid})\n"]
    slices = [each for each in card.instances if each.uuid in uuids]
    for position, each in enumerate(slices):
        lines.append(f"  MIG {each.profile:<15}Device  {position}: (UUID: {each.uuid})\n")
    return "".join(lines)


def _csv(fields: list[str], options: list[str], cards: list[Card]) -> tuple[int, str]:
    if unknown := [field for field in fields if field not in _FIELDS]:
        return INVALID, f'Field "{unknown[0]}" is not a valid field to query.\n'
    units = "nounits" not in options
    asked = [(field, *_FIELDS[field]) for field in fields]
    rows = [[f"{value(card)}{unit if units else ''}" for _, unit, value in asked] for card in cards]
    head = [f"{field} [{unit.strip()}]" if unit else field for field, unit, _ in asked]
    table = rows if "noheader" in options else [head, *rows]
    return 0, "".join(", ".join(row) + "\n" for row in table)


def _summary(hardware: Hardware, cards: list[Card]) -> str:
    major, minor = divmod(hardware.cuda_driver_version // 10, 100)
    cuda = f"{major}.{minor}"
    lines = [f"NVIDIA-SMI {hardware.driver_version}    CUDA Version: {cuda}    (simulated)"]
    for number, card in enumerate(cards):
        watts = f"{card.power_watts}W / {card.power_limit_watts}W"
        memory = f"{card.memory_used_bytes // _MIB}MiB / {card.memory_total_bytes // _MIB}MiB"
        lines.append(
            f"{number:>3}  {card.name:<30} {card.pci_bus_id}  {card.temperature_celsius}C  "
            f"{watts}  {memory}  {card.utilization_percent}%"
        )
    return "\n".join(lines) + "\n"
