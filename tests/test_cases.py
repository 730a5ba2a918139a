"""tests/cases.md is whole, and names only tests that there are."""

from __future__ import annotations

import subprocess
import sys
from typing import Literal

import pytest

from tests.support.cases import CASES_MD, CasesRan, named_tests, sentences
from tests.support.processes import ROOT

CASES = {
    "C01", "C02", "C06", "C08", "C09", "C11", "C13", "C18", "C20", "C21", "C22",
    "C24", "C25", "C27", "C28", "C29", "C30", "C36", "C38", "C43", "C45",
}  # fmt: skip


def test_every_case_of_this_work_is_listed_and_every_sentence_is_proved_or_later() -> None:
    found = sentences(CASES_MD.read_text())
    assert {one.case for one in found} == CASES
    for one in found:
        assert bool(one.tests) != bool(one.later), one
        for test in one.tests:
            assert one.case.lower() in test.partition("::")[2], (one.words, test)


def test_every_named_test_is_collected() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *sorted(named_tests())], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    collected = {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}
    assert collected == named_tests()


def test_a_line_that_is_neither_a_test_nor_later_is_refused() -> None:
    with pytest.raises(ValueError, match="no test"):
        sentences("## C06 Counting\n- It counts.\n  - somewhere\n")


@pytest.mark.parametrize(
    ("outcomes", "missing"),
    [
        ({"a.py::test_a": "passed", "a.py::test_b[1]": "passed"}, []),
        ({"a.py::test_a": "passed"}, ["a.py::test_b"]),
        ({"a.py::test_a": "failed", "a.py::test_b": "passed"}, ["a.py::test_a"]),
        (
            {"a.py::test_a": "passed", "a.py::test_b[1]": "passed", "a.py::test_b[2]": "failed"},
            ["a.py::test_b"],
        ),
        ({"a.py::test_a": "skipped", "a.py::test_b": "passed"}, ["a.py::test_a"]),
    ],
)
def test_a_run_of_everything_misses_what_did_not_run_and_pass(
    outcomes: dict[str, Literal["passed", "failed", "skipped"]], missing: list[str]
) -> None:
    named = {"a.py::test_a", "a.py::test_b"}
    whole, part = CasesRan(named, whole=True), CasesRan(named, whole=False)
    for plugin in (whole, part):
        for nodeid, outcome in outcomes.items():
            plugin.pytest_runtest_logreport(
                pytest.TestReport(nodeid, (nodeid, 1, nodeid), {}, outcome, None, "call")
            )
    assert whole.missing == missing
    assert part.missing == []
