"""GPU feature discovery's labels (contracts.md section 2) and the operator's own."""

from __future__ import annotations

import re

from simulator.fleet.inventory import GPU, NodeSpec
from simulator.hardware import Hardware

_PREFIX = "nvidia.com/"


def node_labels(spec: NodeSpec, hardware: Hardware) -> dict[str, str]:
    """All labels of a node, NVIDIA's and Kubernetes' own."""
    parts, model = [*hardware.driver_version.split("."), ""][:3], spec.model
    cuda = str(hardware.cuda_driver_version // 1000), str(hardware.cuda_driver_version % 1000 // 10)
    labels = {
        "cuda.driver-version.full": hardware.driver_version,
        "cuda.driver-version.major": parts[0],
        "cuda.driver-version.minor": parts[1],
        "cuda.driver-version.revision": parts[2],
        "cuda.runtime-version.full": ".".join(cuda),
        "cuda.runtime-version.major": cuda[0],
        "cuda.runtime-version.minor": cuda[1],
        "gpu.present": "true",
        "gpu.deploy.device-plugin": "true",
        "gpu.machine": model.machine,
        "gpu.count": str(spec.cards),
        "gpu.replicas": str(spec.replicas.get(GPU, 1)),
        "gpu.sharing-strategy": "time-slicing" if spec.replicas else "none",
        "gpu.product": product_label(model.name),
        "gpu.family": model.family,
        "gpu.compute.major": str(model.compute_capability[0]),
        "gpu.compute.minor": str(model.compute_capability[1]),
        "gpu.mode": "compute",
        "mig.capable": str(bool(model.profiles)).lower(),
        "mps.capable": "false",
        "vgpu.present": "false",
        **({} if model.unified_memory else {"gpu.memory": str(model.memory_mib)}),
        **_mig_labels(spec),
    }
    return {
        "kubernetes.io/hostname": spec.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "arm64" if model.unified_memory else "amd64",
        "lab.example/rack": str(spec.rack),
        "feature.node.kubernetes.io/pci-10de.present": "true",
        **{_PREFIX + name: value for name, value in labels.items()},
        **({} if spec.agent else {"gpuadmin.io/agent": "false"}),
        **spec.labels,
    }


def product_label(name: str) -> str:
    """The card's name, sanitised as GFD does."""
    return re.sub(r"[^A-Za-z0-9\-_. ]", "", name).strip().replace(" ", "-")


def _mig_labels(spec: NodeSpec) -> dict[str, str]:
    if not spec.cuts:
        return {}
    labels = {"mig.strategy": "mixed"}
    profiles = [profile for cut in spec.cuts.values() for profile, _ in cut]
    for profile in sorted(set(profiles)):
        slots = spec.replicas.get(f"nvidia.com/mig-{profile}", 1)
        shape = spec.model.profiles[profile]
        labels |= {
            f"mig-{profile}.count": str(profiles.count(profile)),
            f"mig-{profile}.replicas": str(slots),
            f"mig-{profile}.sharing-strategy": "time-slicing" if slots > 1 else "none",
            f"mig-{profile}.memory": str(shape.memory_mib),
            f"mig-{profile}.slices.gi": str(shape.compute_slices),
            f"mig-{profile}.slices.ci": str(shape.compute_slices),
            f"mig-{profile}.product": f"{product_label(spec.model.name)}-MIG-{profile}",
        }
    return labels
