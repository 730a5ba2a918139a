"""Start and stop a real Kubernetes control plane for the tests.

etcd speaks on unix sockets in the run folder, kube-apiserver on one free loopback port, the
controller-manager and the scheduler on nothing. The programs, all of one binary, die with the
thread that started them. Nothing outside the run folder is written.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from tests.controlplane import build
from tests.controlplane.client import Client, write_kubeconfig
from tests.controlplane.flags import flags_of
from tests.controlplane.waiting import until

START_SECONDS = 60.0
SIMULATOR_ROLE = Path(__file__).with_name("simulator-role.yaml")
# Kubeconfigs that are written, each with its user and group as its certificate states them.
USERS = {
    "admin": "kubernetes-admin/system:masters",
    "controller-manager": "system:kube-controller-manager",
    "scheduler": "system:kube-scheduler",
    "simulator": "gpuadmin-simulator",
}


class PlaneError(Exception):
    """The control plane did not start, or a program of it died; the message has its last lines."""


class ControlPlane:
    """A control plane in ``run_dir``: ``with ControlPlane(folder) as plane: …``.

    ``admin`` is a client that may do everything, ``start_seconds`` is how long the start took.
    """

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir.resolve()
        self.start_seconds = 0.0
        self._binary = str(build.binary())
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        self._port = 0

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def admin(self) -> Client:
        """A client as a member of system:masters."""
        return Client(self.kubeconfig("admin"))

    def kubeconfig(self, user: str) -> Path:
        """The kubeconfig of one of USERS; "simulator" is who the simulated nodes sign in as."""
        return self.run_dir / f"{user}.kubeconfig"

    def kubeconfig_for(self, service_account: str, namespace: str) -> Path:
        """Write a kubeconfig with a fresh token (1 h) of a ServiceAccount that exists."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        answer = self.admin.ok("POST", path, request | {"spec": {"expirationSeconds": 3600}})
        return self._write_kubeconfig(
            f"{namespace}-{service_account}", {"token": answer["status"]["token"]}
        )

    def kubectl(self, *args: str, kubeconfig: Path | None = None) -> str:
        """Run the real kubectl, as the administrator unless told otherwise; return what it printed.

        Raises subprocess.CalledProcessError with kubectl's own words in ``stderr``.
        """
        beside = Path(sys.executable).with_name("kubectl")
        program = str(beside) if beside.exists() else "kubectl"
        command = [program, "--kubeconfig", str(kubeconfig or self.kubeconfig("admin"))]
        command += ["--cache-dir", str(self.run_dir / "kubectl-cache"), *args]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=START_SECONDS
        ).stdout

    def start(self) -> None:
        """Start everything and wait until pods can be made; raise PlaneError."""
        started = time.monotonic()
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self._port = _free_port()
        try:
            self._write_identities()
            flags = flags_of(self._port)
            self._launch("etcd", flags)
            self._launch("kube-apiserver", flags)
            until(self._is_ready, START_SECONDS, "the API server to be ready")
            # Not earlier: the controller-manager gives up after 10 s without an API server.
            self._launch("kube-controller-manager", flags)
            self._launch("kube-scheduler", flags)
            self.kubectl("apply", "-f", str(SIMULATOR_ROLE))
            until(self._takes_pods, START_SECONDS, "namespaces with their default ServiceAccount")
        except BaseException:
            self.stop()
            raise
        self.start_seconds = time.monotonic() - started

    def stop(self) -> None:
        """End every program at once (its state is thrown away) and leave only the logs."""
        for program in self._programs.values():
            program.kill()
        for program in self._programs.values():
            program.wait()
        self._programs.clear()
        for name in ("etcd.data", "kubectl-cache", "pki"):
            shutil.rmtree(self.run_dir / name, ignore_errors=True)
        for left in [*self.run_dir.glob("*:0"), *self.run_dir.glob("*.kubeconfig")]:
            left.unlink(missing_ok=True)

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _write_identities(self) -> None:
        (self.run_dir / "pki").mkdir(mode=0o700)
        subjects = [f"{name}={subject}" for name, subject in USERS.items()]
        subprocess.run([self._binary, "pki", "pki", *subjects], cwd=self.run_dir, check=True)
        for name in USERS:
            files = {"client-certificate": f"{name}.crt", "client-key": f"{name}.key"}
            user = {key: str(self.run_dir / "pki" / file) for key, file in files.items()}
            self._write_kubeconfig(name, user)

    def _write_kubeconfig(self, name: str, user: dict[str, str]) -> Path:
        return write_kubeconfig(
            self.kubeconfig(name), self.url, self.run_dir / "pki" / "ca.crt", user
        )

    def _launch(self, name: str, flags: dict[str, list[str]]) -> None:
        with (self.run_dir / f"{name}.log").open("wb") as log:
            self._programs[name] = subprocess.Popen(
                [self._binary, name, *flags[name]],
                cwd=self.run_dir,
                env=os.environ | {"CONTROLPLANE_PARENT": str(os.getpid())},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is ours to handle: we stop them
            )

    def _check_alive(self) -> None:
        for name, program in self._programs.items():
            if program.poll() is not None:
                log = (self.run_dir / f"{name}.log").read_text(errors="replace")
                lines = "\n".join(log.splitlines()[-15:])
                raise PlaneError(f"{name} ended with status {program.returncode}:\n{lines}")

    def _is_ready(self) -> bool:
        self._check_alive()
        try:
            return self.admin.call("GET", "/readyz").status == 200
        except OSError:  # it does not listen yet
            return False

    def _takes_pods(self) -> bool:
        self._check_alive()
        namespaces = self.admin.get("/api/v1/namespaces")["items"]
        accounts = self.admin.get("/api/v1/serviceaccounts?fieldSelector=metadata.name%3Ddefault")[
            "items"
        ]
        names = {namespace["metadata"]["name"] for namespace in namespaces}
        served = {account["metadata"]["namespace"] for account in accounts}
        return {"default", "kube-system", "kube-node-lease"} <= names == served


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
