"""What every test may count on: real services when it asks for the database, and no way out.

PostgreSQL and Valkey start with the first test that needs them, one pair for each test process.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.db.backends.postgresql.operations import DatabaseOperations

from dev import processes
from dev.services import Postgres, Valkey, prepare_postgres
from tests.support.cases import CasesRan, named_tests, runs_everything

AGENT_SECRET = "the agents' secret of the tests"
SECRET_KEY = "the sessions' secret of the tests, long enough"


def flush_with_the_audit_guard_off(self: DatabaseOperations, statements: list[str]) -> None:
    """Between transactional tests every table is emptied: the audit table, which refuses it, and
    knox's own table of tokens, which stands beside ours and which Django forgets."""
    table = "ALTER TABLE accounts_auditentry {} TRIGGER audit_table_stays"
    statements = [statement.replace(";", " CASCADE;") for statement in statements]
    execute_sql_flush(self, [table.format("DISABLE"), *statements, table.format("ENABLE")])


execute_sql_flush = DatabaseOperations.execute_sql_flush
DatabaseOperations.execute_sql_flush = flush_with_the_audit_guard_off  # type: ignore[assignment, method-assign]


@dataclass(frozen=True)
class Services:
    """Running servers, and the folder that holds everything of theirs."""

    postgres: Postgres
    valkey: Valkey
    folder: Path


def pytest_configure(config: pytest.Config) -> None:
    settings.AGENT_SECRET = AGENT_SECRET
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # Serve static files from where they are written; tests/test_static.py tries the real storage.
    settings.STORAGES["staticfiles"] = {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
    }
    settings.WHITENOISE_USE_FINDERS = settings.WHITENOISE_AUTOREFRESH = True
    config.pluginmanager.register(NothingLeftOut(), "nothing-left-out")
    if not hasattr(config, "workerinput"):
        everything = runs_everything(config)
        config.pluginmanager.register(CasesRan(named_tests(), whole=everything), "cases-ran")
        # Each of them ends the run like Ctrl-C, with the services stopped; SIGINT may come ignored.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler)


@pytest.fixture(scope="session")
def services() -> Iterator[Services]:
    """PostgreSQL and Valkey on unix sockets, gone with everything of theirs at the end."""
    folder = Path(tempfile.mkdtemp(prefix="gpuadmin-test-"))
    folder.chmod(0o755)  # PostgreSQL's user has to enter
    postgres = prepare_postgres(folder, folder / "pg", durable=False)
    valkey = Valkey(folder / "valkey.sock")
    running = []
    try:
        for server in (postgres, valkey):
            command = server.command()
            log = folder / f"{command.name}.log"
            running.append((processes.spawn(command, log), command.stop_signal))
            if not processes.wait_until(server.is_ready, seconds=20):
                pytest.exit(f"{command.name} did not start:\n{processes.tail(log)}")
        yield Services(postgres, valkey, folder)
    finally:
        for process, ask in running:
            processes.stop(process, ask, seconds=5)
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    services: Services, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """Points Django at our PostgreSQL just before pytest-django makes the test database."""
    connection = connections["default"]
    connection.settings_dict |= {"USER": "gpuadmin", "HOST": str(services.postgres.sockets)}


@pytest.fixture
def process_environ(services: Services, db: None) -> dict[str, str]:
    """The environment of a process of ours (worker, watcher, web) on this test's database.

    The test must be marked `django_db(transaction=True)`, or the process sees none of its rows.
    """
    postgres, name = services.postgres, connections["default"].settings_dict["NAME"]
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "gpuadmin.settings",
        "GPUADMIN_DATABASE_URL": f"postgresql://gpuadmin@/{name}?host={postgres.sockets}",
        "GPUADMIN_REDIS_URL": services.valkey.url,
        "GPUADMIN_SECRET_KEY": SECRET_KEY,
        "GPUADMIN_AGENT_SECRET": AGENT_SECRET,
        "GPUADMIN_LOOPBACK_AGENTS": "true",
    }


class NothingLeftOut:
    """A skipped or an expectedly failing test proves nothing, so it fails the run."""

    def __init__(self) -> None:
        self.left_out: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped or hasattr(report, "wasxfail"):
            self.left_out.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.left_out and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for nodeid in self.left_out:
            terminalreporter.write_line(f"ERROR: skipped or expected to fail: {nodeid}", red=True)


def _refuse_the_outside(event: str, arguments: tuple[Any, ...]) -> None:
    """No test reaches beyond loopback and unix sockets."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
        if host != "localhost" and not ip_address(host).is_loopback:
            raise ConnectionRefusedError(f"tests do not reach beyond loopback: {host}")


sys.addaudithook(_refuse_the_outside)
