"""The embedded servers survive every kind of death, and change nothing that is not theirs."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from dev import processes
from dev.services import Postgres, Valkey, prepare_postgres

ROOT = Path(__file__).resolve().parents[2]
# A supervisor in a process of its own, so that it can be killed.
SUPERVISOR = """
import sys, time
from pathlib import Path
from dev import processes, services
home = Path(sys.argv[1])
server = services.prepare_postgres(home, home / "pg", durable=False)
child = processes.spawn(server.command(), home / "log")
processes.wait_until(server.is_ready, 20)
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that PostgreSQL's user may enter (pytest's own folders are closed to others)."""
    folder = Path(tempfile.mkdtemp(prefix="gpuadmin-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "\nState:\tZ" not in status.read_text()


def start(home: Path) -> tuple[Postgres, "subprocess.Popen[bytes]"]:
    server = prepare_postgres(home, home / "pg", durable=False)
    child = processes.spawn(server.command(), home / "log")
    ready = processes.wait_until(server.is_ready, seconds=20)
    assert ready, processes.tail(home / "log")
    return server, child


def test_postgresql_keeps_its_data_over_a_kill(home: Path) -> None:
    server, child = start(home)
    with psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    child.kill()
    child.wait()
    server, child = start(home)
    with psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
    processes.stop(child, signal.SIGINT, seconds=5)


def test_postgresql_dies_with_a_killed_supervisor_and_starts_again(home: Path) -> None:
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, str(home)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert supervisor.stdout
    pid = int(supervisor.stdout.readline())
    supervisor.kill()
    supervisor.wait()
    supervisor.stdout.close()
    _, child = start(home)
    assert not is_running(pid)
    processes.stop(child, signal.SIGINT, seconds=5)


def test_a_pid_file_that_names_somebody_else_is_only_stale(home: Path) -> None:
    _, child = start(home)
    pid_file = home / "postgres" / "postmaster.pid"
    lines = pid_file.read_text().split("\n")
    child.kill()
    child.wait()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]))
    _, child = start(home)
    processes.stop(child, signal.SIGINT, seconds=5)


def test_a_folder_closed_to_postgresqls_user_stays_closed(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed, elsewhere = home / "closed", home / "elsewhere"
    closed.mkdir(mode=0o700)
    elsewhere.mkdir(mode=0o755)
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    monkeypatch.setattr("dev.services._package_folder", lambda name: package_in(closed, name))
    before = closed.stat()
    server = prepare_postgres(closed / "data", home / "pg", durable=False)
    after = closed.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    if os.geteuid() == 0:
        assert elsewhere in server.data.parents
        assert f"its data is in {server.data}" in capsys.readouterr().out
    child = processes.spawn(server.command(), home / "log")
    assert processes.wait_until(server.is_ready, seconds=20), processes.tail(home / "log")
    processes.stop(child, signal.SIGINT, seconds=5)


def package_in(folder: Path, name: str) -> Path:
    """The package as an environment in that folder would have it."""
    spec = importlib.util.find_spec(name)
    assert spec
    found = Path(str(spec.origin)).parent
    for part in (found, found.with_name(f"{name}.libs")):
        if not (folder / part.name).exists():
            shutil.copytree(part, folder / part.name)
    return folder / name


def test_valkey_answers_on_a_socket_and_leaves_none(home: Path) -> None:
    valkey = Valkey(home / "v.sock")
    assert not valkey.is_ready()
    child = processes.spawn(valkey.command(), home / "log")
    assert processes.wait_until(valkey.is_ready, seconds=5), processes.tail(home / "log")
    processes.stop(child, signal.SIGTERM, seconds=5)
    assert not valkey.socket.exists()
