"""The twelve nodes of the demo, as the mockups show them: 73 cards of six models."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from simulator.fleet.models import A100, GB10, H100, H200, L40S, MIB, T4, Model
from simulator.hardware import Card, Hardware, Instance

GPU = "nvidia.com/gpu"
_NAMESPACE = uuid.UUID("5f2c6f0e-6b5a-4d3c-9c53-7a1f0d0e8b11")  # of all made-up ids here
_CUDA = {"570.158.01": 12080, "580.95.05": 13000, "550.163.01": 12040}

Cut = tuple[tuple[str, int], ...]  # (profile, start) of each instance
SEVEN: Cut = tuple(("1g.10gb", start) for start in range(7))


@dataclass(frozen=True)
class NodeSpec:
    """One node. ``cuts``: card index → instances, for each card in MIG mode."""

    name: str
    model: Model
    cards: int
    rack: int
    cuts: dict[int, Cut] = field(default_factory=dict)
    replicas: dict[str, int] = field(default_factory=dict)  # resource → slots per device
    replicas_before: dict[str, int] = field(default_factory=dict)  # until the tenants have started
    stale: dict[str, int] = field(default_factory=dict)  # names advertised without hardware (C02)
    labels: dict[str, str] = field(default_factory=dict)
    tainted: bool = False
    cordoned: bool = False
    driver: str = "570.158.01"
    agent: bool = True

    @property
    def plugin(self) -> bool:
        """Whether the device plugin runs here: the MIG manager pauses it by this label."""
        return self.labels.get("nvidia.com/gpu.deploy.device-plugin", "true") == "true"


_STUCK = {
    "nvidia.com/mig.config": "all-1g.10gb",
    "nvidia.com/mig.config.state": "pending",
    **{
        f"nvidia.com/gpu.deploy.{name}": "paused-for-mig-change"
        for name in ("device-plugin", "gpu-feature-discovery", "dcgm-exporter", "dcgm")
    },
}
_SUCCESS = {"nvidia.com/mig.config.state": "success"}

INVENTORY = (
    NodeSpec("a100-01", A100, 8, 1),
    NodeSpec(
        "a100-02", A100, 4, 1, cuts=dict.fromkeys(range(4), ()), labels=_STUCK, cordoned=True,
        stale={GPU: 0},
    ),
    NodeSpec(
        "a100-03", A100, 8, 2, cuts=dict.fromkeys(range(8), SEVEN),
        stale={GPU: 0, "nvidia.com/mig-3g.40gb": 2},
        labels={"nvidia.com/mig.config": "all-1g.10gb", **_SUCCESS},
    ),
    NodeSpec("h100-01", H100, 8, 3, tainted=True),
    NodeSpec(
        "h100-02", H100, 8, 4, tainted=True,
        cuts={
            4: (("2g.20gb", 0), ("2g.20gb", 2), ("3g.40gb", 4)),
            5: SEVEN,
            6: (("7g.80gb", 0),),
        },
        replicas={"nvidia.com/mig-7g.80gb": 4},
        labels={"nvidia.com/mig.config": "h100-02-b3f1", **_SUCCESS},
    ),
    NodeSpec("h100-03", H100, 8, 4, tainted=True),
    NodeSpec("h100-04", H100, 8, 5, tainted=True, cordoned=True),
    NodeSpec("h200-01", H200, 8, 6, tainted=True),
    NodeSpec("l40s-01", L40S, 4, 7),
    NodeSpec("l40s-02", L40S, 4, 7, replicas={GPU: 4}, replicas_before={GPU: 6}),
    NodeSpec("t4-01", T4, 4, 8, driver="550.163.01", agent=False),
    NodeSpec("gb10-01", GB10, 1, 8, driver="580.95.05"),
)  # fmt: skip


def made_up_id(*parts: object) -> uuid.UUID:
    """The same id for the same parts, in every run."""
    return uuid.uuid5(_NAMESPACE, "/".join(map(str, parts)))


def hardware(spec: NodeSpec) -> Hardware:
    """The node's cards at rest."""
    return Hardware(
        node_name=spec.name,
        driver_version=spec.driver,
        nvml_version=f"12.{spec.driver}",
        cuda_driver_version=_CUDA[spec.driver],
        cards=[_card(spec, index) for index in range(spec.cards)],
    )


def _card(spec: NodeSpec, index: int) -> Card:
    model = spec.model
    bus = 0x1B + 0x20 * index if spec.cards > 1 else 0x0F
    cut = spec.cuts.get(index)
    return Card(
        index=index,
        uuid=f"GPU-{made_up_id(spec.name, index)}",
        name=model.name,
        serial=str(made_up_id("serial", spec.name, index).int % 10**13).zfill(13),
        pci_bus_id=f"00000000:{bus:02X}:00.0",
        pci_device_id=model.pci_device_id,
        compute_capability=model.compute_capability,
        architecture=model.architecture,
        memory_total_bytes=model.memory_mib * MIB,
        unified_memory=model.unified_memory,
        power_watts=model.idle_watts,
        power_limit_watts=model.power_limit_watts,
        mig_capable=bool(model.profiles),
        mig_current=cut is not None,
        mig_pending=cut is not None,
        instances=[_instance(spec, index, *each, number) for number, each in enumerate(cut or ())],
        errors=dict(model.errors),
    )


def _instance(spec: NodeSpec, index: int, name: str, start: int, number: int) -> Instance:
    profile = spec.model.profiles[name]
    return Instance(
        uuid=f"MIG-{made_up_id(spec.name, index, name, start)}",
        profile=name,
        profile_id=profile.profile_id,
        gpu_instance_id=number + 1 if profile.compute_slices < 7 else 0,
        compute_slices=profile.compute_slices,
        start=start,
        size=profile.size,
        memory_total_bytes=profile.memory_mib * MIB,
    )
