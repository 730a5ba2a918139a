"""What the official client's models alone cost: the same pages, parsed and thrown away.

In a process of its own, a page at a time, so that its memory is that of one page.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = {"nodes": "V1NodeList", "pods": "V1PodList"}
_CODE = "from benchmarks.peer import main; main()"


@dataclass(frozen=True)
class Cost:
    """CPU of the parsing, and the largest resident set of the process that did it."""

    cpu_seconds: float
    peak_mib: float


def parse_all(url: str) -> Cost:
    """Every page of nodes and of pods that the server at ``url`` has, into the client's models."""
    root = Path(__file__).resolve().parent.parent
    argv = [sys.executable, "-c", _CODE, url]
    found = subprocess.run(argv, cwd=root, env=os.environ, check=True, stdout=subprocess.PIPE)
    seconds, peak = json.loads(found.stdout)
    return Cost(seconds, peak)


def main() -> None:
    from kubernetes.client import ApiClient  # noqa: PLC0415 - its import is not what we measure

    client = ApiClient()
    used = 0.0
    for kind, model in KINDS.items():
        more = "0"
        while more:
            page = _get(f"{sys.argv[1]}/api/v1/{kind}?limit=500&continue={more}")
            begun = time.process_time()
            parsed: Any = client.deserialize(page, model, "application/json")
            used += time.process_time() - begun
            more = parsed.metadata._continue
    print(json.dumps([used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def _get(url: str) -> str:
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - our own server
        text: str = answer.read().decode()
    return text
