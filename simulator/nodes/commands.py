"""The few programs that can be run in a simulated container."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from simulator.hardware import Hardware
from simulator.nodes.plugin import Device
from simulator.nvml import smi

NOT_EXECUTABLE, NOT_FOUND = 126, 127  # as a shell says it
_FOLDERS = ("/", "/bin", "/dev", "/etc", "/tmp", "/usr", "/var")  # noqa: S108 - names, not used


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended."""

    code: int
    stdout: str = ""
    stderr: str = ""


def run(command: Sequence[str], hardware: Hardware, held: Sequence[Device]) -> Result:
    """One command in a container that holds these devices of this hardware."""
    program, *arguments = command
    match program.rpartition("/")[2], arguments:
        case ("true" | "false") as name, _:
            return Result(code=int(name == "false"))
        case "echo", _:
            return Result(code=0, stdout=" ".join(arguments) + "\n")
        case "sh" | "bash", ["-c", script]:
            return _script(script, hardware, held)
        case "nvidia-smi", _ if held:  # the container toolkit brings it with a device only
            code, stdout = smi.run(arguments, hardware, [(d.card, d.base) for d in held])
            return Result(code=code, stdout=stdout)
    if program in _FOLDERS:
        return Result(code=NOT_EXECUTABLE, stderr=f"{program}: permission denied\n")
    text = f'exec: "{program}": executable file not found in $PATH\n'
    return Result(code=NOT_FOUND, stderr=text)


def _script(script: str, hardware: Hardware, held: Sequence[Device]) -> Result:
    """One command, or ``exit N``: this is no shell."""
    try:
        words = shlex.split(script)
    except ValueError as error:
        return Result(code=2, stderr=f"sh: syntax error: {error}\n")
    match words:
        case []:
            return Result(code=0)
        case ["exit", number] if number.isdigit():
            return Result(code=int(number) % 256)
        case _:
            return run(words, hardware, held)
