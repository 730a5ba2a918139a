"""The repository's own rules: what is written down is complete, and nothing foreign is in it."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from dev.documents import settings_page
from gpuadmin import env

ROOT = Path(__file__).resolve().parent.parent


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def text_of(*patterns: str) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in tracked(*patterns)}


def test_every_setting_is_documented() -> None:
    assert (ROOT / "docs" / "settings.md").read_text() == settings_page()


@pytest.mark.parametrize("row", env.SETTINGS.values(), ids=lambda row: row.name)
def test_every_setting_is_read_by_the_code(row: env.Setting[object]) -> None:
    constant = next(name for name, value in vars(env).items() if value is row)
    settings = (ROOT / "gpuadmin" / "settings.py").read_text()
    assert f"env.{constant}.read()" in settings
    if f"\n{constant} = env.{constant}.read()\n" in settings and settings.count(constant) == 2:
        code = "".join(text_of("gpuadmin/*.py").values())
        assert f"settings.{constant}" in code


def test_every_variable_that_the_code_names_exists() -> None:
    named = {
        name
        for text in text_of("*.py", "Makefile", "*.md", "deploy").values()
        for name in re.findall(r"\bGPUADMIN_[A-Z]+(?:_[A-Z]+)*\b", text)
    }
    ours = set(env.known_names()) | {"GPUADMIN_SIM_PARENT"}
    made_up = {"GPUADMIN_POLL_SECOND", "GPUADMIN_NAMESPACES"}  # tests/test_environment.py
    assert named - ours - made_up == set()


def test_every_make_target_has_a_line_of_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    helped = set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))
    assert targets - helped == {"setup-demo", "setup-tests"}


def test_every_dependency_has_its_reason_written_down() -> None:
    reasons = (ROOT / "docs" / "dependencies.md").read_text().lower()
    lines = [
        line
        for path in tracked("requirements*.in")
        for line in path.read_text().splitlines()
        if re.match(r"[a-z]", line)
    ]
    packages = [re.match(r"[a-z0-9-]+", line) for line in lines]
    missing = [found.group() for found in packages if found and f"| {found.group()}" not in reasons]
    assert missing == []


def test_the_console_may_import_nothing_of_the_agent_but_its_contract() -> None:
    """import-linter has no "all but": its list must name every other module of the agent."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (contract,) = [one for one in contracts if one["name"].startswith("Of the agent")]
    modules = {path.stem for path in (ROOT / "agent").iterdir() if not path.name.startswith("_")}
    assert {f"agent.{name}" for name in modules - {"contract"}} <= set(
        contract["forbidden_modules"]
    )


def test_files_and_functions_stay_short_enough_to_read() -> None:
    sources = {
        path: text
        for path, text in text_of("*.py").items()
        if "migrations" not in path.parts and not path.stem.endswith("_pb2")
    }
    long_files = [path.name for path, text in sources.items() if text.count("\n") > 400]
    long_functions = [
        f"{path.name}: {node.name}"
        for path, text in sources.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= 60
    ]
    assert (long_files, long_functions) == ([], [])


def test_no_file_names_a_machine_or_a_package_registry() -> None:
    machine = re.compile(rf"{re.escape(str(ROOT))}/|/(root|home)/\w")
    registry = re.compile(r"https?://[^\s\"')>]*(pypi|pythonhosted|npmjs|golang|debian)\b")
    offences = [
        (path.name, found[0])
        for path, text in text_of(
            "*.py", "*.md", "*.in", "*.txt", "*.json", "*.toml", "Makefile"
        ).items()
        for pattern in (machine, registry)
        if (found := pattern.search(text)) and path != Path(__file__)
    ]
    assert offences == []


def test_no_file_of_somebody_else_is_kept_in_the_tree() -> None:
    foreign = tracked("*.min.js", "*.min.css", "*.map", "*.whl", "*.so", "*.woff2", "vendor/*")
    assert foreign == []
