"""Where one node's files lie, and what of a host they show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from simulator.fleet.inventory import made_up_id


@dataclass(frozen=True)
class Places:
    """Files of one node. ``socket`` stays under 107 bytes: ``sockets`` is a short folder."""

    run_dir: Path
    sockets: Path
    node_name: str

    @property
    def hardware(self) -> Path:
        return self.run_dir / "hw" / f"{self.node_name}.json"

    @property
    def checkpoint(self) -> Path:
        """What the kubelet gave to whom; a real one keeps the same file for its own restart."""
        return self.run_dir / "hw" / f"{self.node_name}.devices.json"

    @property
    def host_root(self) -> Path:
        return self.run_dir / "hosts" / self.node_name

    @property
    def socket(self) -> Path:
        return self.sockets / f"{self.node_name}.sock"

    @property
    def boot_id(self) -> str:
        return str(made_up_id("boot", self.node_name))

    @property
    def machine_id(self) -> str:
        return made_up_id("machine", self.node_name).hex

    def prepare(self) -> None:
        """Make the folders and the small host tree that the agent reads."""
        self.hardware.parent.mkdir(parents=True, exist_ok=True)
        boot = self.host_root / "proc/sys/kernel/random/boot_id"
        machine = self.host_root / "etc/machine-id"
        for file, text in ((boot, self.boot_id), (machine, self.machine_id)):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n")
        self.socket.unlink(missing_ok=True)
