"""Agent processes, forked from one warm parent.

pynvml keeps its state for a whole process, so each simulated agent is a process of its own. The
warm parent has imported all that an agent needs and has neither threads nor an event loop; a fork
of it is up in milliseconds and shares its memory.
"""

from __future__ import annotations

import asyncio
import gc
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import msgspec

from simulator.processes import STOP_SIGNALS, die_with_parent


class AgentJob(msgspec.Struct, frozen=True, kw_only=True):
    """One agent to run, as it travels to the warm parent."""

    node_name: str
    pod_uid: str
    secret: str
    bind: str
    port: int
    host_root: str
    kubelet_socket: str
    hardware: str


class _Stop(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    pod_uid: str


class _Start(msgspec.Struct, frozen=True, kw_only=True, tag="start"):
    job: AgentJob


class _Ended(msgspec.Struct, frozen=True, kw_only=True):
    pod_uid: str
    status: int


class AgentProcesses:
    """Starts and stops agents. Make it before anything starts a thread or an event loop."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            ours.close()
            _warm_parent(theirs, parent)
        theirs.close()
        ours.setblocking(False)
        self._socket = ours

    def start(self, job: AgentJob) -> None:
        """Fork an agent."""
        self._socket.send(msgspec.json.encode(_Start(job=job)))

    def stop(self, pod_uid: str) -> None:
        """SIGTERM to an agent; one that isn't there is no error."""
        self._socket.send(msgspec.json.encode(_Stop(pod_uid=pod_uid)))

    def on_end(self, callback: Callable[[str, int], None]) -> None:
        """Call ``callback(pod_uid, exit status)`` in the running loop when an agent ended."""

        def read() -> None:
            message = self._socket.recv(65536)
            if message:
                ended = msgspec.json.decode(message, type=_Ended)
                callback(ended.pod_uid, ended.status)
            else:
                asyncio.get_running_loop().remove_reader(self._socket)

        asyncio.get_running_loop().add_reader(self._socket, read)

    def close(self) -> None:
        """End the warm parent and with it all agents."""
        self._socket.close()
        os.waitpid(self._pid, 0)


def _warm_parent(commands: socket.socket, parent: int) -> NoReturn:
    """The warm parent's whole life, in the forked process."""
    try:
        die_with_parent(parent)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is our parent's affair
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        import simulator.nvml.agent  # noqa: F401, PLC0415 - what makes this parent warm

        gc.freeze()
        _serve(commands)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _serve(commands: socket.socket) -> None:
    """Start and stop agents as told, and tell which ended, until the other side is gone."""
    running: dict[str, int] = {}
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with selectors.DefaultSelector() as selector:
        selector.register(commands, selectors.EVENT_READ)
        selector.register(wake_read, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is commands and not _obey(commands, running):
                    _stop_all(running)
                    return
            _reap(wake_read, commands, running)


def _obey(commands: socket.socket, running: dict[str, int]) -> bool:
    message = commands.recv(65536)
    if not message:
        return False
    order = msgspec.json.decode(message, type=_Start | _Stop)
    if isinstance(order, _Stop):
        if order.pod_uid in running:
            os.kill(running[order.pod_uid], signal.SIGTERM)
        return True
    warm = os.getpid()
    pid = os.fork()
    if pid == 0:
        commands.close()
        _agent(order.job, warm)
    running[order.job.pod_uid] = pid
    return True


def _reap(wake: int, commands: socket.socket, running: dict[str, int]) -> None:
    try:
        os.read(wake, 4096)
    except BlockingIOError:
        return
    for pod_uid, pid in list(running.items()):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            del running[pod_uid]
            code = os.waitstatus_to_exitcode(status)
            commands.send(msgspec.json.encode(_Ended(pod_uid=pod_uid, status=code)))


def _stop_all(running: dict[str, int]) -> None:
    for pid in running.values():
        os.kill(pid, signal.SIGTERM)
    for pid in running.values():
        os.waitpid(pid, 0)


def _agent(job: AgentJob, warm_parent: int) -> NoReturn:
    """One agent's whole life, in the forked process."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        die_with_parent(warm_parent)
        from agent.server import AgentConfig  # noqa: PLC0415 - imported already, by the parent
        from simulator.nvml.agent import run_simulated  # noqa: PLC0415

        config = AgentConfig(
            node_name=job.node_name,
            pod_uid=job.pod_uid,
            secret=job.secret.encode(),
            bind=job.bind,
            port=job.port,
            host_root=Path(job.host_root),
            kubelet_socket=Path(job.kubelet_socket),
        )
        os._exit(run_simulated(config, Path(job.hardware)))
    except BaseException:
        traceback.print_exc(file=sys.stderr)
        os._exit(1)
