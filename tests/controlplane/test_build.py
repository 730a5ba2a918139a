"""The build script through its own door, with a stand-in for Go: the real one takes minutes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import build
from tests.controlplane.waiting import until

SCRIPT = str(build.SOURCE / "build.py")
# Answers as `go version`, `go list` and `go build … -o TARGET .` do, and notes each build.
GO = """#!/bin/sh
case "$1" in
  version) echo "go version go${GO_SAYS:-1.99.0} linux/amd64" ;;
  list)
    if [ -n "$GO_REFUSED" ]; then echo "proxy.invalid: 403 Forbidden" >&2; exit 1; fi
    echo fmt; echo os ;;
  build)
    echo $$ >> "$GO_LOG"
    sleep "${GO_SECONDS:-0}"
    while [ "$1" != "-o" ]; do shift; done
    mkdir -p "$(dirname "$2")"; echo '#!/bin/sh' > "$2"; chmod +x "$2" ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """An environment with an empty cache and the stand-in as its only Go."""
    tools = tmp_path / "tools"
    tools.mkdir()
    go = tools / "go"
    go.write_text(GO)
    go.chmod(0o755)
    return {
        "PATH": f"{tools}:/usr/bin:/bin",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "GO_LOG": str(tmp_path / "builds"),
    }


def _start(machine: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, SCRIPT],
        env=machine,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(machine: dict[str, str]) -> tuple[int, str, str]:
    process = _start(machine)
    out, err = process.communicate()
    return process.returncode, out.strip(), err


def _builds(machine: dict[str, str]) -> list[str]:
    log = Path(machine["GO_LOG"])
    return log.read_text().split() if log.exists() else []


def test_it_builds_once_and_prints_only_the_path(machine: dict[str, str]) -> None:
    first, second = _run(machine), _run(machine)
    assert first[0] == second[0] == 0
    assert first[1] == second[1]
    assert os.access(first[1], os.X_OK)
    assert first[1].startswith(machine["XDG_CACHE_HOME"])
    assert "building Kubernetes" in first[2]
    assert second[2] == ""
    assert len(_builds(machine)) == 1


def test_two_at_once_build_once(machine: dict[str, str]) -> None:
    both = [_start(machine | {"GO_SECONDS": "1"}) for _ in range(2)]
    paths = {process.communicate()[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(paths) == 1
    assert len(_builds(machine)) == 1


def test_another_go_version_is_another_binary(machine: dict[str, str]) -> None:
    assert _run(machine)[1] != _run(machine | {"GO_SAYS": "1.99.1"})[1]
    assert len(_builds(machine)) == 2


def test_a_given_folder_is_used_as_it_is(machine: dict[str, str], tmp_path: Path) -> None:
    built = Path(_run(machine)[1])
    status, path, _ = _run(machine | {"GPUADMIN_CONTROLPLANE_BIN": str(built.parent), "PATH": ""})
    assert (status, path) == (0, str(built))
    status, path, words = _run(machine | {"GPUADMIN_CONTROLPLANE_BIN": str(tmp_path)})
    assert (status, path) == (1, "")
    assert "holds no executable file “controlplane”" in words


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"PATH": ""}, "no `go` is on PATH: install Go 1."),
        ({"GO_SAYS": "1.20.3"}, "Go 1.20.3"),
        ({"GO_SAYS": "-nonsense"}, "install Go 1."),
        ({"GO_REFUSED": "1"}, "proxy.invalid: 403 Forbidden\nCheck the network and GOPROXY"),
    ],
)
def test_what_is_missing_is_said_with_what_to_do(
    machine: dict[str, str], change: dict[str, str], sentence: str
) -> None:
    status, path, words = _run(machine | change)
    assert (status, path) == (1, "")
    assert sentence in words
    assert "GPUADMIN_CONTROLPLANE_BIN" in words
    assert "Traceback" not in words


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_compilers_too_and_leaves_no_half_built_binary(
    machine: dict[str, str], number: signal.Signals
) -> None:
    process = _start(machine | {"GO_SECONDS": "60"})
    until(lambda: _builds(machine), 20, "the build to begin")
    process.send_signal(number)
    process.communicate()
    assert process.returncode == 128 + number
    assert not Path(f"/proc/{_builds(machine)[0]}").exists()
    assert list(Path(machine["XDG_CACHE_HOME"]).glob("gpuadmin/*-*")) == []
