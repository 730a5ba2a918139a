"""What an agent answers to ``GET /v1/report``: version 1 of the wire.

Units stand in the names. ``None`` means "not known", never zero; the reason
stands in ``field_errors`` under the field's name. Sources of the facts:
contracts.md sections 5 and 6; cases C25, C27, C28, C29 and C30.
"""

from __future__ import annotations

from typing import Literal

import msgspec

CONTRACT_VERSION = 1
PORT_NAME = "agent"
DEFAULT_PORT = 9477
TOKEN_HEADER = "X-Gpuadmin-Token"  # noqa: S105 - a header's name, not a secret
LEASE_SECONDS = 60
MAX_RELEASE_SECONDS = 600

FieldError = Literal["not_supported", "no_permission", "gpu_is_lost", "error"]
"""Why a field is ``None``: NVML's NotSupported, NoPermission, GpuIsLost, or anything else."""

MigModeError = Literal["not_supported"]
GpuState = Literal["ok", "lost", "error"]
ReportState = Literal["ok", "paused", "error"]
MemoryKind = Literal["dedicated", "unified", "unknown"]


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """One process on a card, as the driver lists it. Pids are the host's (C29)."""

    pid: int
    kind: Literal["compute", "graphics", "mps"] = "compute"
    memory_used_bytes: int | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None
    name: str | None = None  # only with the host's pid namespace


class MigInstance(msgspec.Struct, frozen=True, kw_only=True):
    """One MIG device: a compute instance inside a GPU instance (contracts.md 6.6)."""

    uuid: str
    profile: str | None = None  # "3g.40gb", "1g.10gb+me": from the device's own name
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None
    compute_slices: int | None = None
    placement_start: int | None = None  # in memory slices; None without privilege
    placement_size: int | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    field_errors: dict[str, FieldError] = {}


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One card. A lost card keeps its last known uuid and has ``state == "lost"`` (C25)."""

    index: int
    uuid: str | None = None
    state: GpuState = "ok"
    error: str | None = None
    name: str | None = None
    serial: str | None = None
    pci_bus_id: str | None = None
    pci_device_id: str | None = None  # "0x233010DE": device, vendor
    compute_capability: str | None = None  # "9.0"
    memory_kind: MemoryKind = "unknown"
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None  # without what the driver reserves, where v2 is known
    utilization_percent: int | None = None
    memory_utilization_percent: int | None = None
    temperature_celsius: int | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    ecc_uncorrectable_volatile: int | None = None
    mig_mode_current: bool | None = None  # None: this model has no MIG, or it was not readable
    mig_mode_pending: bool | None = None
    mig_instances: tuple[MigInstance, ...] = ()
    processes: tuple[Process, ...] | None = None
    unreadable_processes: int = 0  # entries with impossible pids or sizes, dropped (C29)
    field_errors: dict[str, FieldError] = {}


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One device id from PodResources, resolved on the node at that moment (C30)."""

    id: str  # as the kubelet gave it, never cut
    gpu_uuid: str | None = None
    mig_uuid: str | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None
    slot: int | None = None  # the replica number of a time-sliced or MPS device
    recognised: bool = True


class PodDevices(msgspec.Struct, frozen=True, kw_only=True):
    """What one container of one pod holds of one resource. PodResources knows no pod uid."""

    namespace: str
    pod: str
    container: str
    resource: str
    devices: tuple[Device, ...]


class Xid(msgspec.Struct, frozen=True, kw_only=True):
    """One XID event, numbered within this agent instance. ``age_seconds`` is at sending time."""

    sequence: int
    code: int
    gpu_uuid: str | None
    age_seconds: float
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer. ``state``: "paused" after a release (C18), "error": NVML can't be read."""

    version: int = CONTRACT_VERSION
    agent_version: str
    agent_instance: str  # new at each start of the process
    sequence: int  # 1, 2, 3 … within the instance
    node_name: str
    pod_uid: str
    sent_at: float  # unix seconds by the node's clock; never used for storage (C45)
    boot_id: str | None = None
    machine_id: str | None = None
    state: ReportState = "ok"
    reason: str | None = None  # one sentence for a person when state is not "ok"
    driver_version: str | None = None
    cuda_version: str | None = None
    nvml_version: str | None = None
    gpus: tuple[Gpu, ...] = ()
    pods: tuple[PodDevices, ...] | None = None  # None: the kubelet did not answer
    pods_error: str | None = None
    xids: tuple[Xid, ...] = ()  # the ring of the last 256 of this instance
    xid_sequence: int = 0  # number of the newest XID seen, 0 when none
    xids_from: float | None = None  # age in seconds since when XIDs are being listened for


class ReleaseRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /v1/release``."""

    seconds: int
    reason: str


def decode_report(body: bytes) -> Report:
    """Decode a report strictly by type.

    Raises ``msgspec.DecodeError`` (``ValidationError`` is a subclass) on anything that is not a
    report of a known version.
    """
    report = msgspec.json.decode(body, type=Report)
    if report.version != CONTRACT_VERSION:
        raise msgspec.ValidationError(
            f"report version {report.version}, known is {CONTRACT_VERSION}"
        )
    return report
