"""Writes the documents that are made from the code: docs/settings.md and docs/openapi.yaml.

python -m dev.documents            writes them
python -m dev.documents --check    fails where one of them isn't what the code says
"""

import os
import sys
from pathlib import Path

import django
from django.core.management import call_command

from gpuadmin import env

DOCS = Path(__file__).resolve().parent.parent / "docs"


def main(*, check: bool) -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gpuadmin.settings")
    django.setup()
    written = {"settings.md": settings_page(), "openapi.yaml": _openapi()}
    stale = [name for name, text in written.items() if _read(DOCS / name) != text]
    if check:
        for name in stale:
            print(f"docs/{name} is not what the code says: run make documents", file=sys.stderr)
        return int(bool(stale))
    for name in stale:
        (DOCS / name).write_text(written[name])
        print(f"docs/{name} written")
    return 0


def settings_page() -> str:
    """docs/settings.md: a row for each variable that the console reads, and those of the tools."""
    rows = ["| variable | default | what it is |", "|---|---|---|"]
    for row in env.SETTINGS.values():
        default = "needed" if row.needed_to_serve else _shown(row.default)
        rows.append(f"| `{row.name}` | {default} | {row.help}{_or_file(row)} |")
    tools = [f"- `{name}`: {help_}" for name, help_ in env.TOOL_NAMES.items()]
    return "\n".join(
        [
            "# Settings",
            "",
            "Made from gpuadmin/env.py by `make documents`; a test holds it complete. Every one",
            "is an environment variable. `manage.py check` reports a misspelt name or a bad value,",
            "and no web or worker process starts with one.",
            "",
            *rows,
            "",
            "Read by the tests and the Makefile only:",
            "",
            *tools,
            "",
        ]
    )


def _shown(default: object) -> str:
    if isinstance(default, tuple):
        default = ",".join(default)
    if isinstance(default, bool):
        default = str(default).lower()
    return f"`{default}`" if default not in ("", None) else "empty"


def _or_file(row: env.Setting[object]) -> str:
    return f" Or `{row.name}_FILE`, a file that holds it." if row.secret else ""


def _openapi() -> str:
    file = DOCS.parent / "var" / "openapi.yaml"
    file.parent.mkdir(exist_ok=True)
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(file))
    return file.read_text()


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else ""


if __name__ == "__main__":
    sys.exit(main(check=sys.argv[1:] == ["--check"]))
