"""``python -m simulator.sizes``: how large each part of the simulator is, against its bound.

Counted are lines that hold code: no blank lines, comments or docstrings. The bounds keep the
simulator from becoming a second Kubernetes; a larger one needs a decision record (design.md 6).
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).parent
BOUNDS = {
    "API": (1500, ("api",)),
    "control": (520, ("control",)),
    "nodes": (1450, ("nodes",)),
    "fleet": (450, ("fleet",)),
    "NVML": (600, ("nvml",)),
    "faults": (450, ("faults", "ctl.py")),
}
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Lines with code on them. Raises ``SyntaxError`` for what isn't Python."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def sizes() -> dict[str, tuple[int, int]]:
    """Part → (lines, bound)."""
    found: dict[str, tuple[int, int]] = {}
    for part, (bound, places) in BOUNDS.items():
        files = [file for place in places for file in _files(ROOT / place)]
        found[part] = (sum(code_lines(file.read_text(encoding="utf-8")) for file in files), bound)
    return found


def _files(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


def main() -> int:
    """Print the table; 1 when a part is too large."""
    found = sizes()
    for part, (lines, bound) in found.items():
        mark = "" if lines <= bound else "  too large"
        sys.stdout.write(f"simulator {part:<7}{lines:>6} of {bound} lines{mark}\n")
    return int(any(lines > bound for lines, bound in found.values()))


if __name__ == "__main__":
    sys.exit(main())
