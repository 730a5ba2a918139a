"""Settings and logs: what an administrator gets wrong is answered by one sentence each."""

import logging
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection

from gpuadmin import env
from gpuadmin.logs import OneLineFormatter


def test_a_misspelt_setting_is_named_with_the_nearest_real_one() -> None:
    assert env.problems({"GPUADMIN_POLL_SECOND": "20"}) == [
        "GPUADMIN_POLL_SECOND is not a setting of gpuadmin: did you mean GPUADMIN_POLL_SECONDS?"
    ]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (
            "GPUADMIN_POLL_SECONDS",
            "soon",
            "must be a whole number from 5 to 3600, but it is 'soon'.",
        ),
        ("GPUADMIN_POLL_SECONDS", "0", "must be a whole number from 5 to 3600, but it is '0'."),
        ("GPUADMIN_HTTPS", "maybe", "must be true or false, but it is 'maybe'."),
        (
            "GPUADMIN_REDIS_URL",
            "x",
            "must be like redis://host:6379/0 or unix:///path/of/the.sock.",
        ),
        ("GPUADMIN_SECRET_KEY", "short", "must have at least 32 characters."),
    ],
)
def test_a_bad_value_gets_one_sentence_and_the_default(
    name: str, value: str, sentence: str
) -> None:
    assert env.problems({name: value}) == [f"{name} {sentence}"]
    assert env.SETTINGS[name].read({name: value}) == env.SETTINGS[name].default


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("z" * 32 + "\n")
    assert env.SECRET_KEY.read({"GPUADMIN_SECRET_KEY_FILE": str(secret)}) == "z" * 32


def test_a_secret_given_twice_or_unreadable_is_a_problem(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    assert env.problems({"GPUADMIN_SECRET_KEY_FILE": gone}) == [
        f"GPUADMIN_SECRET_KEY_FILE names {gone}, which cannot be read: No such file or directory."
    ]
    twice = {"GPUADMIN_SECRET_KEY": "x" * 40, "GPUADMIN_SECRET_KEY_FILE": gone}
    assert env.problems(twice) == [
        "Both GPUADMIN_SECRET_KEY and GPUADMIN_SECRET_KEY_FILE are set: unset one of them."
    ]


def test_no_sentence_shows_a_secret() -> None:
    found = env.problems({"GPUADMIN_SECRET_KEY": "canary", "GPUADMIN_DATABASE_URL": "canary"})
    assert len(found) == 2
    assert "canary" not in "".join(found)


@pytest.mark.parametrize(
    "argv", [["celery", "-A", "gpuadmin", "worker"], ["python", "-c", "import gpuadmin.wsgi"]]
)
def test_a_serving_process_refuses_a_bad_environment_in_words(argv: list[str]) -> None:
    bad = {"PATH": "", "GPUADMIN_SECRET_KEY": "x" * 40, "GPUADMIN_LOG_LEVEL": "loud"}
    argv[0] = str(Path(sys.executable).parent / argv[0])
    ended = subprocess.run(argv, env=bad, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-3:] == [
        "gpuadmin cannot start:",
        f"  GPUADMIN_AGENT_SECRET is not set: {env.AGENT_SECRET.help}",
        "  GPUADMIN_LOG_LEVEL must be one of DEBUG, INFO, WARNING, ERROR, but it is 'loud'.",
    ]


def test_the_web_process_starts_without_the_kubernetes_client() -> None:
    """Its models cost 126 MB, and the pages read PostgreSQL."""
    question = (
        "import sys, gpuadmin.wsgi; from django.urls import get_resolver;"
        "get_resolver().url_patterns; sys.exit('kubernetes' in sys.modules)"
    )
    environ = {"GPUADMIN_SECRET_KEY": "x" * 40, "GPUADMIN_AGENT_SECRET": "y" * 20}
    assert (
        subprocess.run([sys.executable, "-c", question], env=environ, check=False).returncode == 0
    )


def test_every_manage_command_shows_the_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUADMIN_NAMESPACES", "x")
    with pytest.raises(SystemCheckError, match="did you mean GPUADMIN_NAMESPACE"):
        call_command("check")


def test_a_hostile_name_cannot_forge_a_log_line() -> None:
    record = logging.LogRecord(
        "fleet", logging.INFO, "f.py", 1, "node %s is gone", ("a\nERROR b\x1b[31m\u202e",), None
    )
    shown = OneLineFormatter("%(levelname)s %(message)s").format(record)
    assert shown == "INFO node a\\nERROR b\\x1b[31m\\u202e is gone"


def test_the_lines_of_a_traceback_stay_marked_as_its_own() -> None:
    try:
        int("first\nERROR forged")
    except ValueError:
        record = logging.LogRecord("a", 40, "f.py", 1, "failed", (), sys.exc_info())
    lines = OneLineFormatter("%(levelname)s %(message)s").format(record).split("\n")
    assert [line for line in lines if not line.startswith("  | ")] == ["ERROR failed"]


@pytest.mark.django_db
def test_tests_run_on_a_real_postgresql() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT version()")
        assert cursor.fetchone()[0].startswith("PostgreSQL 18")


def test_no_test_reaches_beyond_loopback() -> None:
    with socket.socket() as client, pytest.raises(ConnectionRefusedError, match="beyond loopback"):
        client.connect(("192.0.2.1", 80))
