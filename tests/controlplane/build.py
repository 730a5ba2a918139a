"""Build the control plane of the tests once, and print the path of the binary.

``python tests/controlplane/build.py`` is ``make controlplane``. It uses the standard library only,
so that it runs before anything is installed. Messages go to standard error, the path to standard
output.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).resolve().parent
BINARY = "controlplane"
PROGRESS_SECONDS = 30.0


class BuildError(Exception):
    """The binary cannot be had; the message is one sentence that says what to do."""


def binary() -> Path:
    """Return the path of the ``controlplane`` binary, building it when it is not in the cache.

    ``GPUADMIN_CONTROLPLANE_BIN`` names a folder that holds the binary already. Raises BuildError.
    """
    if folder := os.environ.get("GPUADMIN_CONTROLPLANE_BIN"):
        return _given(Path(folder))
    go, version = _toolchain()
    built = _cache() / f"controlplane-{_key(version)}" / BINARY
    if not built.exists():
        with _lock(_cache() / "controlplane.lock"):
            if not built.exists():  # another process may have built it while we waited
                _build(go, built)
    return built


def _given(folder: Path) -> Path:
    given = folder / BINARY
    if not os.access(given, os.X_OK):
        raise BuildError(
            f"GPUADMIN_CONTROLPLANE_BIN names {folder}, which holds no executable file "
            f"“{BINARY}”; unset it to build one, or point it at a folder printed by this script."
        )
    return given


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gpuadmin"


def _toolchain() -> tuple[str, str]:
    """Return Go's path and version ("1.26.8"); raise BuildError where it is missing or too old."""
    needed = _go_mod(r"^go (\S+)$")
    remedy = f"install Go {needed} or newer, or set GPUADMIN_CONTROLPLANE_BIN to built binaries."
    go = shutil.which("go")
    if go is None:
        raise BuildError(
            f"Building the test control plane needs Go, and no `go` is on PATH: {remedy}"
        )
    answer = subprocess.run(
        [go, "version"], env=_environment(), capture_output=True, text=True, check=False
    )
    found = re.search(r"\bgo(\d+(?:\.\d+)*)", answer.stdout)
    if found is None:
        raise BuildError(f"`{go} version` said {answer.stdout + answer.stderr!r}: {remedy}")
    if _numbers(found[1]) < _numbers(needed):
        raise BuildError(f"Go {found[1]} ({go}) is too old for the test control plane: {remedy}")
    return go, found[1]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _go_mod(pattern: str) -> str:
    found = re.search(pattern, (SOURCE / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise BuildError(f"{SOURCE / 'go.mod'} has no line that matches {pattern!r}.")
    return found[1]


def _key(go_version: str) -> str:
    digest = hashlib.sha256(go_version.encode())
    for path in [SOURCE / "go.mod", SOURCE / "go.sum", *sorted(SOURCE.glob("*.go"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _environment() -> dict[str, str]:
    """Return Go's environment: its own caches beside ours, and no toolchain but the local one."""
    return os.environ | {
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-mod=readonly -modcacherw",
        "GOMODCACHE": str(_cache() / "go" / "mod"),
        "GOCACHE": str(_cache() / "go" / "build"),
        "CGO_ENABLED": "0",
    }


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another process is building the control plane; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(go: str, built: Path) -> None:
    release = _go_mod(r"^\s*k8s\.io/kubernetes v(\S+)$")
    _say(f"building Kubernetes {release} for the tests: about 7 minutes from a cold cache, once")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=built.parent.parent, prefix="building-") as scratch:
        packages = _fetch(go, scratch)
        _say(f"modules are here after {time.monotonic() - started:.0f} s; compiling")
        folder = Path(scratch) / built.parent.name
        _compile(go, scratch, folder / BINARY, release, packages)
        folder.rename(built.parent)
    size_mb = built.stat().st_size // 1_000_000
    _say(f"built {built} ({size_mb} MB) in {time.monotonic() - started:.0f} s")


@contextmanager
def _running(command: list[str], scratch: str) -> Iterator[subprocess.Popen[str]]:
    """Run Go with its temporary files in ``scratch``; leaving early ends it with its compilers."""
    process = subprocess.Popen(
        command,
        cwd=SOURCE,
        env=_environment() | {"GOTMPDIR": scratch},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate()


def _fetch(go: str, scratch: str) -> int:
    """Download the modules that the build needs and return the number of its packages."""
    with _running([go, "list", "-deps", "."], scratch) as process:
        packages, problems = process.communicate()
    if process.returncode:
        raise BuildError(
            f"The Go modules of the test control plane could not be had:\n{_tail(problems)}\n"
            "Check the network and GOPROXY, or set GPUADMIN_CONTROLPLANE_BIN to built binaries."
        )
    return len(packages.split())


def _compile(go: str, scratch: str, target: Path, release: str, packages: int) -> None:
    major, minor, _ = release.split(".", 2)
    stamp = {"gitVersion": f"v{release}", "gitMajor": major, "gitMinor": minor}
    values = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamp.items()]
    command = [go, "build", "-v", "-trimpath", "-buildvcs=false"]
    command += ["-ldflags", " ".join(["-s", "-w", *values]), "-o", str(target), "."]
    lines: list[str] = []
    started = said = time.monotonic()
    with _running(command, scratch) as process:
        for line in process.stderr or ():  # -v names each package as it is compiled
            lines.append(line)
            if time.monotonic() - said >= PROGRESS_SECONDS:
                said = time.monotonic()
                _say(f"{len(lines)} of at most {packages} packages after {said - started:.0f} s")
        process.wait()
    if process.returncode:
        raise BuildError(f"`go build` of the test control plane failed:\n{_tail(''.join(lines))}")


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-15:])


def _say(sentence: str) -> None:
    print(f"controlplane: {sentence}", file=sys.stderr, flush=True)  # noqa: T201


def main() -> int:
    """Print the path of the binary; return the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _frame: sys.exit(128 + caught))
    try:
        path = binary()
    except BuildError as error:
        _say(str(error))
        return 1
    print(path)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
