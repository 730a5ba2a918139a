"""The Dockerfile, held without Docker: what it copies is enough, and what it runs exists."""

from __future__ import annotations

import ast
import fnmatch
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.conftest import AGENT_SECRET, SECRET_KEY
from tests.deploy.dockerfile import lay_out, stages
from tests.deploy.manifests import compose, console
from tests.deploy.written import ROOT

BIN = Path(sys.executable).parent
ENVIRON = {"PATH": f"{BIN}:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
SECRETS = {"GPUADMIN_SECRET_KEY": SECRET_KEY, "GPUADMIN_AGENT_SECRET": AGENT_SECRET}


def run(
    command: list[str] | str, folder: Path, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    argv = ["sh", "-ec", command] if isinstance(command, str) else command
    return subprocess.run(
        argv, cwd=folder, env=ENVIRON | (environ or {}), capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server image's /app after its RUN lines."""
    folder, stage = tmp_path_factory.mktemp("server"), stages()["server"]
    lay_out(stage, folder)
    for line in stage.runs:
        done = run(line, folder)
        assert done.returncode == 0, done.stderr
    return folder


def test_the_dockerfile_passes_the_linter() -> None:
    done = run(["hadolint", "Dockerfile"], ROOT)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_server_is_not_root_and_brings_its_static_files(server: Path) -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", stages()["server"].user), "a number, for runAsNonRoot"
    assert (server / ".static" / "staticfiles.json").is_file()


def test_what_the_server_image_holds_is_enough_to_serve(server: Path) -> None:
    done = run([*stages()["server"].command, "--check-config"], server, SECRETS)
    assert done.returncode == 0, done.stderr


def test_every_other_process_of_the_console_starts_from_that_image(server: Path) -> None:
    commands = [
        part["args"]
        for pod in console().values()
        for part in (*pod["initContainers"], *pod["containers"])
    ]
    services = compose()["services"]
    commands += [one["command"] for one in services.values() if "build" in one and "command" in one]
    commands.append(services["worker"]["healthcheck"]["test"][1:])
    for command in commands:
        done = run([*command, "--help"], server, SECRETS)  # an option that is not there is told
        assert done.returncode == 0, (command, done.stderr)


def test_compose_and_the_manifests_run_the_same_commands() -> None:
    services = compose()["services"]
    in_cluster = {name: pod["containers"][0]["args"] for name, pod in console().items()}
    assert in_cluster.pop("web") == stages()["server"].command
    assert "command" not in services["web"]
    for name, args in in_cluster.items():
        here = [one for one in services[name]["command"] if not one.startswith("--hostname=")]
        assert here == args


def test_what_the_agent_image_holds_is_enough_to_start(tmp_path: Path) -> None:
    stage = stages()["agent"]
    lay_out(stage, tmp_path)
    done = run(stage.command, tmp_path)
    assert done.returncode == 2
    assert "NODE_NAME is not set" in done.stderr


@pytest.mark.parametrize(("image", "folder"), [("server", "gpuadmin"), ("agent", "agent")])
def test_every_package_that_the_code_imports_is_in_the_image(image: str, folder: str) -> None:
    lock = (ROOT / f"requirements-{image}.txt").read_text()
    locked = set(re.findall(r"^([a-z0-9-]+)(?:\[[a-z,]+\])?==", lock, re.MULTILINE))
    owners = packages_distributions()
    used = {
        distribution.lower().replace("_", "-").replace(".", "-")
        for module in imported(ROOT / folder)
        for distribution in owners.get(module, [])
    }
    assert used
    assert {name for name in used if name not in locked} <= alternatives(used, locked)


def alternatives(used: set[str], locked: set[str]) -> set[str]:
    """``psycopg-binary`` is psycopg's; stubs share a module's name with the package itself."""
    return {name for name in used if name.endswith("stubs") or f"{name}-binary" in locked}


def imported(folder: Path) -> Iterator[str]:
    """The top-level modules that the code in a folder imports."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


def test_the_lock_files_of_images_and_tests_agree() -> None:
    versions: dict[str, str] = {}
    for name in ("requirements.txt", "requirements-server.txt", "requirements-agent.txt"):
        for package, version in re.findall(
            r"^([a-z0-9-]+)(?:\[[a-z,]+\])?==(\S+)", (ROOT / name).read_text(), re.MULTILINE
        ):
            assert versions.setdefault(package, version) == version, package


def test_docker_is_sent_what_it_copies_and_no_more() -> None:
    first, *lines = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert first == "*"
    sent = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = {
        source for stage in stages().values() for sources, _ in stage.copies for source in sources
    }
    assert {source.split("/")[0] for source in copied} == sent
    assert not any(fnmatch.fnmatch("var", name) for name in sent)
