"""tests/cases.md as data, and a pytest plugin: every test named in it must have run and passed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CASES_MD = Path(__file__).parents[1] / "cases.md"
_HEADING = re.compile(r"## (C\d\d) ")
_TEST = re.compile(r"  - `(tests/\S+\.py::test_\w+)`")


@dataclass
class Sentence:
    """One sentence of what is right: its tests, or what has to come first."""

    case: str
    words: str
    tests: list[str] = field(default_factory=list)
    later: str = ""


def sentences(text: str) -> list[Sentence]:
    """The sentences of cases.md in order. Raises ``ValueError`` for a line it cannot place."""
    found: list[Sentence] = []
    case = ""
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            case = heading[1]
        elif case and line.startswith("- "):
            found.append(Sentence(case, line[2:]))
        elif case and line.strip():
            _add(found[-1], line)
    return found


def _add(sentence: Sentence, line: str) -> None:
    if test := _TEST.fullmatch(line):
        sentence.tests.append(test[1])
    elif line.startswith("  - later: "):
        sentence.later = line.removeprefix("  - later: ")
    elif line.startswith("  ") and not line.startswith("  - "):
        sentence.words += " " + line.strip()
    else:
        raise ValueError(f"cases.md: {line!r} is no test and no `later:`")


def named_tests() -> set[str]:
    """Every test id in cases.md."""
    return {test for one in sentences(CASES_MD.read_text()) for test in one.tests}


class CasesRan:
    """Fails a run of everything in which a named test did not run and pass in all its variants."""

    def __init__(self, named: Iterable[str], *, whole: bool) -> None:
        self._named, self._whole = set(named), whole
        self._passed: set[str] = set()
        self._failed: set[str] = set()
        self._broken_off = False  # nothing can be said of a run that did not run

    @property
    def missing(self) -> list[str]:
        """Named tests that did not run, or not well; empty when only a part was to run."""
        counts = self._whole and not self._broken_off
        return sorted(self._named - (self._passed - self._failed)) if counts else []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid.partition("[")[0]
        if report.when == "call" and report.passed:
            self._passed.add(test)
        elif not report.passed:
            self._failed.add(test)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        told = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        self._broken_off = session.exitstatus not in told
        if session.exitstatus == pytest.ExitCode.OK and self.missing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for test in self.missing:
            line = f"ERROR: cases.md names it, but it did not run and pass: {test}"
            terminalreporter.write_line(line, red=True)


def runs_everything(config: pytest.Config) -> bool:
    """Whether pytest was called without a path or a filter of its own."""
    chosen = config.option
    return (
        config.args_source is not pytest.Config.ArgsSource.ARGS
        and chosen.markexpr in config.getini("addopts")
        and not any((chosen.keyword, chosen.deselect, chosen.collectonly))
        and not config.getoption("lf", default=False)
    )
