"""The agent's settings, all from the environment. A bad one is one clear sentence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent.contract.report import DEFAULT_PORT, LEASE_SECONDS

KUBELET_SOCKET = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
MIN_SECRET_BYTES = 16


class ConfigError(Exception):
    """A setting is missing or wrong; the message says which one and what to do."""


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent needs to know. ``secret`` is shared with the server (agent.contract.token)."""

    node_name: str
    pod_uid: str
    secret: bytes
    bind: str = "0.0.0.0"  # noqa: S104 - a pod is reached by its own address; NetworkPolicy guards it
    port: int = DEFAULT_PORT
    host_root: Path = Path("/")
    kubelet_socket: Path = KUBELET_SOCKET
    host_pid: bool = False  # the host's pid namespace is shared: process names may be read (C29)
    read_seconds: float = 2.5  # time limit for NVML and for the kubelet; the server gives up at 3 s
    lease_seconds: float = LEASE_SECONDS  # for how long one report holds NVML open


def from_environment(environ: Mapping[str, str]) -> AgentConfig:
    """The settings of ``environ``.

    Raises ``ConfigError`` for the first setting that is missing or wrong.
    """
    return AgentConfig(
        node_name=_required(environ, "NODE_NAME", "spec.nodeName"),
        pod_uid=_required(environ, "POD_UID", "metadata.uid"),
        secret=_secret(environ),
        bind=environ.get("AGENT_BIND") or "0.0.0.0",  # noqa: S104 - see AgentConfig.bind
        port=_port(environ.get("AGENT_PORT") or str(DEFAULT_PORT)),
        host_root=_folder("AGENT_HOST_ROOT", environ.get("AGENT_HOST_ROOT") or "/"),
        kubelet_socket=Path(environ.get("AGENT_KUBELET_SOCKET") or KUBELET_SOCKET),
        host_pid=_flag("AGENT_HOST_PID", environ.get("AGENT_HOST_PID") or "false"),
    )


def _required(environ: Mapping[str, str], name: str, field_path: str) -> str:
    value = environ.get(name, "").strip()
    if not value:
        raise ConfigError(f"{name} is not set: give it by the downward API from {field_path}.")
    return value


def _secret(environ: Mapping[str, str]) -> bytes:
    file = environ.get("AGENT_TOKEN_SECRET_FILE", "")
    if file:
        try:
            secret = Path(file).read_bytes().strip()
        except OSError as error:
            raise ConfigError(
                f"AGENT_TOKEN_SECRET_FILE: {file} can't be read ({error.strerror}); "
                "mount the Secret gpuadmin-agent-token there."
            ) from error
    else:
        secret = environ.get("AGENT_TOKEN_SECRET", "").strip().encode()
    if len(secret) < MIN_SECRET_BYTES:
        raise ConfigError(
            f"The token secret has {len(secret)} bytes, at least {MIN_SECRET_BYTES} are needed: "
            "set AGENT_TOKEN_SECRET_FILE to the mounted key of the Secret gpuadmin-agent-token."
        )
    return secret


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536):
        raise ConfigError(f"AGENT_PORT is {text!r}: it must be a number from 1 to 65535.")
    return int(text)


def _folder(name: str, text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise ConfigError(f"{name}: {text} is not a folder; mount the host's root there.")
    return path


def _flag(name: str, text: str) -> bool:
    values = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in values:
        raise ConfigError(f"{name} is {text!r}: it must be true or false.")
    return values[text.lower()]
