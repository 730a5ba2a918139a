"""docker-compose.yml, held without Docker: its schema, its settings, its secrets."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gpuadmin import env
from tests.deploy.manifests import compose, named
from tests.deploy.written import ROOT

OURS = ("migrate", "web", "worker", "beat", "watcher")


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What deploy/secrets.sh makes."""
    folder = tmp_path_factory.mktemp("made") / "secrets"
    subprocess.run([ROOT / "deploy" / "secrets.sh", folder], check=True, capture_output=True)
    return folder


def test_it_keeps_to_the_schema_of_the_compose_specification() -> None:
    check = str(Path(sys.executable).with_name("check-jsonschema"))
    done = subprocess.run(
        [check, "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_its_settings_and_secrets_are_enough_to_serve(secrets: Path) -> None:
    settings = compose()["services"]["web"]["environment"]
    read = {
        name: value.partition(":-")[2].rstrip("}") if value.startswith("${") else value
        for name, value in settings.items()
    }
    env.refuse_to_serve({k: v.replace("/run/secrets", str(secrets)) for k, v in read.items()})


def test_the_settings_of_the_manifests_are_enough_to_serve(secrets: Path) -> None:
    (secrets / "redis-url").write_text("redis://redis.example.org:6379/0")
    [found] = named("server", "ConfigMap").values()
    paths = {
        "/run/secrets/gpuadmin-agent-token/secret": str(secrets / "agent-secret"),
        "/run/secrets/gpuadmin": str(secrets),
    }
    settings = dict(found["data"])
    for path, here in paths.items():
        settings = {name: value.replace(path, here) for name, value in settings.items()}
    env.refuse_to_serve(settings)


def test_secrets_come_as_files_which_the_script_makes_once_and_only_their_owner_reaches(
    secrets: Path,
) -> None:
    files = {name: secret["file"] for name, secret in compose()["secrets"].items()}
    made = {path.name: path.read_text() for path in secrets.iterdir()}
    assert {f"./secrets/{name}" for name in made} >= set(files.values()) - {"./secrets/kubeconfig"}
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    assert made["postgres-password"] in made["database-url"]
    subprocess.run([ROOT / "deploy" / "secrets.sh", secrets], check=True, capture_output=True)
    assert {path.name: path.read_text() for path in secrets.iterdir()} == made


def test_our_processes_wait_for_the_database_and_are_confined() -> None:
    services = compose()["services"]
    for name in OURS:
        service = services[name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert "ports" not in service or service["ports"] == ["127.0.0.1:8000:8000"]
    for name in OURS[1:]:
        waits = services[name]["depends_on"]["migrate"]["condition"]
        assert waits == "service_completed_successfully"
    checked = {name for name, service in services.items() if "healthcheck" in service}
    assert checked == {"web", "worker", "postgres", "redis"}
