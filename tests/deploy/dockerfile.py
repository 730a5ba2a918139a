"""A Dockerfile as its stages, so far as ours goes, and an image's files laid out without Docker."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from tests.deploy.written import ROOT


@dataclass
class Stage:
    """What one stage does, its parents not included. ``copies``: sources and where they go."""

    copies: list[tuple[list[str], str]] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    user: str = ""


def stages() -> dict[str, Stage]:
    """The stages of our Dockerfile by name; every one of them has a name."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    found: dict[str, Stage] = {}
    stage = Stage()
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            stage = found[rest.split(" AS ")[1]] = Stage()
        elif word == "COPY" and not rest.startswith("--from"):
            *sources, target = rest.split()
            stage.copies.append((sources, target))
        elif word == "RUN":
            stage.runs.append(rest)
        elif word == "CMD":
            stage.command = json.loads(rest)
        elif word == "USER":
            stage.user = rest
    return found


def lay_out(stage: Stage, folder: Path) -> None:
    """Put there what the stage copies, as Docker would: a folder's content into its target."""
    for sources, target in stage.copies:
        for source in sources:
            path, goal = ROOT / source, folder / target
            if path.is_dir():
                shutil.copytree(
                    path, goal, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
                )
                continue
            goal = goal / path.name if target.endswith("/") else goal
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, goal)
