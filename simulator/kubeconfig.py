"""Kubeconfig files: ours are written here, anyone's are read here for the simulator's clients."""

from __future__ import annotations

import base64
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec


@dataclass(frozen=True)
class Connection:
    """How to reach one API server. ``tls`` is None for plain HTTP."""

    server: str
    token: str | None
    tls: ssl.SSLContext | None


def write(path: Path, server: str, user: str, token: str) -> None:
    """A kubeconfig for one user with a token, readable by its owner only."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "simulated",
        "clusters": [{"name": "simulated", "cluster": {"server": server}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "simulated", "context": {"cluster": "simulated", "user": user}}],
    }
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    with open(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(msgspec.yaml.encode(config))
    temporary.replace(path)


def load(path: Path) -> Connection:
    """The current context of a kubeconfig; certificates inline or as files beside it.

    Raises ``OSError``, ``msgspec.DecodeError`` or ``ValueError`` with what is wrong.
    """
    config = msgspec.yaml.decode(path.read_bytes())
    context = _named(config, "contexts", config.get("current-context"))["context"]
    cluster = _named(config, "clusters", context["cluster"])["cluster"]
    user = _named(config, "users", context["user"])["user"]
    server = cluster["server"].rstrip("/")
    token = user.get("token")
    if "tokenFile" in user:
        token = (path.parent / user["tokenFile"]).read_text().strip()
    tls = _tls(path.parent, cluster, user) if server.startswith("https:") else None
    return Connection(server, token, tls)


def _named(config: dict[str, Any], section: str, name: object) -> dict[str, Any]:
    for entry in config.get(section) or []:
        if entry.get("name") == name:
            return dict(entry)
    raise ValueError(f"the kubeconfig has no {section} entry named {name!r}")


def _tls(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    authority = _pem(folder, cluster, "certificate-authority")
    context = ssl.create_default_context(cadata=authority and authority.decode())
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate, key = _pem(folder, user, "client-certificate"), _pem(folder, user, "client-key")
    if certificate and key:
        with TemporaryDirectory() as temporary:  # ssl reads key pairs from files only
            pair = Path(temporary, "pair.pem")
            pair.touch(0o600)
            pair.write_bytes(certificate + b"\n" + key)
            context.load_cert_chain(pair)
    return context


def _pem(folder: Path, section: dict[str, Any], name: str) -> bytes | None:
    if inline := section.get(f"{name}-data"):
        return base64.b64decode(inline)
    return (folder / section[name]).read_bytes() if name in section else None
