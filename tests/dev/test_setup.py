"""Set-up on a machine that lacks something: one sentence that says what to install."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from dev import setup


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing on the PATH, and nobody who could install it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)


def test_an_old_python_is_told_which_one_is_needed(
    bare_machine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "_is_python311", lambda python: False)
    monkeypatch.setattr(setup, "VENV_PYTHON", Path("/nowhere"))
    with pytest.raises(SystemExit, match=r"gpuadmin needs Python 3\.11, .* Install python3\.11"):
        setup.main("demo")


def test_a_missing_browser_is_named(bare_machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "_once", lambda lock, work: None)
    with pytest.raises(SystemExit, match="the tests drive Chromium: install the package chromium"):
        setup.main("tests")


def test_the_demo_needs_neither_node_nor_a_browser(
    bare_machine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(setup, "_once", lambda lock, work: asked.append(lock))
    setup.main("demo")
    assert asked == ["requirements.txt"]


def test_work_is_done_once_for_each_state_of_its_lock_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    monkeypatch.setattr(setup, "VENV", tmp_path)
    done: list[str] = []
    for text in ("a", "a", "b"):
        (tmp_path / "some.lock").write_text(text)
        setup._once("some.lock", lambda lock: done.append(lock.read_text()))
    assert done == ["a", "b"]


def test_an_old_python_can_at_least_read_the_set_up() -> None:
    ast.parse(Path(setup.__file__).read_text(), feature_version=(3, 7))


def test_an_unknown_purpose_is_answered_with_the_usage() -> None:
    ended = subprocess.run(
        [sys.executable, setup.__file__, "x"], capture_output=True, text=True, check=False
    )
    assert ended.stderr == "usage: python3 dev/setup.py demo|tests\n"
