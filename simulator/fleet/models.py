"""Card models: what NVML and the labels say of each (contracts.md 2, 3.3, 4.2, 6.2)."""

from __future__ import annotations

from dataclasses import dataclass, field

MIB = 1024 * 1024
NOT_SUPPORTED = 3  # NVML_ERROR_NOT_SUPPORTED


@dataclass(frozen=True)
class Profile:
    """One MIG profile; ``size`` and starts are memory slices."""

    profile_id: int
    compute_slices: int
    size: int
    memory_mib: int


@dataclass(frozen=True)
class Model:
    """One card model. ``errors``: NVML functions that this model answers with an error code."""

    name: str
    family: str
    memory_mib: int
    pci_device_id: int
    compute_capability: tuple[int, int]
    architecture: int
    power_limit_watts: int
    idle_watts: int
    machine: str
    unified_memory: bool = False
    profiles: dict[str, Profile] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)


def _profiles(names: str, gibibytes: tuple[float, ...]) -> dict[str, Profile]:
    """The seven-slice family of contracts.md 4.2: 1g, 1g double, 2g, 3g, 4g, 7g."""
    shapes = ((19, 1, 1), (15, 1, 2), (14, 2, 2), (9, 3, 4), (5, 4, 4), (0, 7, 8))
    return {
        name: Profile(*shape, int(memory * 1024))
        for name, shape, memory in zip(names.split(), shapes, gibibytes, strict=True)
    }


_CUT_80 = "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"
_CUT_141 = "1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"

A100 = Model(
    "NVIDIA A100-SXM4-80GB", "ampere", 81920, 0x20B210DE, (8, 0), 7, 400, 55, "Northgate-A8",
    profiles=_profiles(_CUT_80, (9.5, 19.5, 19.5, 39.25, 39.25, 79)),
)  # fmt: skip
H100 = Model(
    "NVIDIA H100 80GB HBM3", "hopper", 81559, 0x233010DE, (9, 0), 9, 700, 69, "Northgate-H8",
    profiles=_profiles(_CUT_80, (9.75, 19.62, 19.62, 39.5, 39.5, 79.25)),
)  # fmt: skip
H200 = Model(
    "NVIDIA H200", "hopper", 143771, 0x233510DE, (9, 0), 9, 700, 75, "Northgate-H8e",
    profiles=_profiles(_CUT_141, (16, 32.25, 32.25, 69.5, 69.5, 140)),
)  # fmt: skip
L40S = Model("NVIDIA L40S", "ada-lovelace", 46068, 0x26B910DE, (8, 9), 8, 350, 34, "Northgate-L4")
T4 = Model("Tesla T4", "turing", 15360, 0x1EB810DE, (7, 5), 6, 70, 10, "Eastbridge-R740")
# Contracts.md 6.7: unified memory; power limit, ECC and MIG are not supported.
GB10 = Model(
    "NVIDIA GB10", "blackwell", 0, 0x2E1210DE, (12, 1), 10, 140, 4, "Eastbridge-Spark",
    unified_memory=True,
    errors=dict.fromkeys(
        (
            "nvmlDeviceGetEnforcedPowerLimit",
            "nvmlDeviceGetPowerManagementLimit",
            "nvmlDeviceGetTotalEccErrors",
            "nvmlDeviceGetMemoryErrorCounter",
        ),
        NOT_SUPPORTED,
    ),
)  # fmt: skip
