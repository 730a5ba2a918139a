"""The generated messages are those of podresources.proto."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROTO = Path("agent/protos/podresources.proto")


def test_the_committed_messages_are_generated_from_the_committed_proto(tmp_path: Path) -> None:
    outputs = (f"--python_out={tmp_path}", f"--pyi_out={tmp_path}")
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", "-I", ".", *outputs, str(PROTO)],
        cwd=ROOT,
        check=True,
        timeout=60,
    )

    for name in ("podresources_pb2.py", "podresources_pb2.pyi"):
        generated = (tmp_path / PROTO.parent / name).read_text()
        assert (ROOT / PROTO.parent / name).read_text() == generated
