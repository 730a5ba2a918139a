"""A kubeconfig that somebody typed in: data only. Nothing in it names a file or runs a program.

Of the file only the chosen context is kept: its server, authority, and token or certificate.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from typing import Any

import msgspec
import yaml

from gpuadmin.kube.connection import Connection
from gpuadmin.kube.errors import BadConfig
from gpuadmin.kube.guard import Guard, check_address

MAX_BYTES = 64 * 1024
_CLUSTER = {"server", "certificate-authority-data", "tls-server-name"}
_USER = {"token", "client-certificate-data", "client-key-data"}
_HARMLESS = {"extensions", "disable-compression", "namespace"}
_FILES = "names a file, which we would read on our own machine: put its content inline, as {}-data"
_REFUSED = {
    "certificate-authority": _FILES.format("certificate-authority"),
    "client-certificate": _FILES.format("client-certificate"),
    "client-key": _FILES.format("client-key"),
    "tokenFile": "names a file, which we would read on our own machine: put the token inline",
    "exec": "runs a program on our machine: make a ServiceAccount's token instead",
    "auth-provider": "runs a program's part of kubectl: make a ServiceAccount's token instead",
    "insecure-skip-tls-verify": "would give the token to whoever answers: give the authority's "
    "certificate as certificate-authority-data",
    "proxy-url": "would send the token through a proxy that nobody here knows",
    "username": "is a basic sign-in, which Kubernetes has given up: make a token",
    "password": "is a basic sign-in, which Kubernetes has given up: make a token",
    "as": "lets us act as somebody else: give the account that we shall be",
    "as-uid": "lets us act as somebody else: give the account that we shall be",
    "as-groups": "lets us act as somebody else: give the account that we shall be",
    "as-user-extra": "lets us act as somebody else: give the account that we shall be",
}


class InlineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What we keep of it. ``ca``, ``certificate`` and ``key`` are PEM texts."""

    server: str
    context: str
    user: str
    ca: str | None = None
    token: str | None = None
    certificate: str | None = None
    key: str | None = None
    server_name: str | None = None

    def __repr__(self) -> str:
        return f"InlineConfig(server={self.server!r}, context={self.context!r})"

    def connection(self, guard: Guard) -> Connection:
        """A connection that only goes where ``guard`` lets it. Raises ``BadConfig``."""
        check_address(self.server)
        header = f"Bearer {self.token}" if self.token else None
        return Connection(
            server=self.server,
            authorization=lambda: header,
            server_name=self.server_name,
            tls=self._tls(),
            guard=guard,
        )

    def _tls(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cadata=self.ca)
        except (ssl.SSLError, ValueError) as error:
            raise BadConfig("certificate-authority-data is no certificate.") from error
        if self.certificate and self.key:
            _load_pair(context, f"{self.certificate}\n{self.key}")
        return context


def read(text: str, context: str = "") -> InlineConfig:
    """The chosen context of a kubeconfig, the current one when "".

    Raises ``BadConfig``; where several things are wrong, with a sentence for each.
    """
    config = _mapping(_parse(text), "The kubeconfig")
    name = context or config.get("current-context") or ""
    if not isinstance(name, str) or not name:
        raise BadConfig("The kubeconfig has no current-context: name the context to use.")
    chosen = _named(config, "contexts", name, "context")
    cluster = _named(config, "clusters", chosen.get("cluster"), "cluster")
    user = _named(config, "users", chosen.get("user"), "user")
    wrong = [*_wrong(cluster, _CLUSTER), *_wrong(user, _USER)]
    if wrong:
        raise BadConfig(" ".join(wrong))
    return _config(name, str(chosen.get("user")), cluster, user)


def _config(context: str, name: str, cluster: dict[str, Any], user: dict[str, Any]) -> InlineConfig:
    server = _text(cluster, "server")
    if server is None:
        raise BadConfig("The context's cluster has no server.")
    check_address(server)
    found = InlineConfig(
        server=server.rstrip("/"),
        context=context,
        user=name,
        ca=_pem(cluster, "certificate-authority-data"),
        token=_text(user, "token"),
        certificate=_pem(user, "client-certificate-data"),
        key=_pem(user, "client-key-data"),
        server_name=_text(cluster, "tls-server-name"),
    )
    if (found.certificate is None) is not (found.key is None):
        raise BadConfig("client-certificate-data and client-key-data belong together.")
    if found.token is None and found.certificate is None:
        raise BadConfig("The context's user has neither a token nor a client certificate.")
    if found.token and not (found.token.isascii() and found.token.isprintable()):
        raise BadConfig("The token has characters that no token has.")
    found._tls()  # what is no certificate is told now and not when it is used
    return found


def _wrong(section: dict[str, Any], known: set[str]) -> list[str]:
    return [
        f"“{str(key)[:60]}” {_REFUSED.get(str(key), 'is nothing that we read: leave it out')}."
        for key, value in section.items()
        if key not in known | _HARMLESS and value not in (None, "", False, [], {})
    ]


class _Plain(yaml.SafeLoader):
    """YAML without aliases: a few lines of them unfold to gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are refused")
        return super().compose_node(parent, index)


def _parse(text: str) -> Any:
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise BadConfig(f"The kubeconfig is larger than {MAX_BYTES // 1024} KiB.")
    try:
        return yaml.load(text, Loader=_Plain)  # noqa: S506  a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        aliases = " Aliases (&, *) are refused." if "aliases" in str(error) else ""
        raise BadConfig(f"The kubeconfig is not YAML that we read{where}.{aliases}") from None


def _named(config: dict[str, Any], section: str, name: object, inner: str) -> dict[str, Any]:
    entries = config.get(section)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name:
            return _mapping(entry.get(inner) or {}, f"The {inner} “{name}”")
    raise BadConfig(f"The kubeconfig has no {inner} named “{str(name)[:100]}”.")


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadConfig(f"{what[:120]} is not what a kubeconfig has there.")
    return value


def _text(section: dict[str, Any], key: str) -> str | None:
    value = section.get(key)
    if value is not None and not isinstance(value, str):
        raise BadConfig(f"{key} must be text.")
    return value.strip() or None if value else None


def _pem(section: dict[str, Any], key: str) -> str | None:
    """base64 of a PEM text, as in a kubeconfig."""
    value = _text(section, key)
    if value is None:
        return None
    try:
        return base64.b64decode("".join(value.split()), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise BadConfig(f"{key} is not base64 of a PEM file.") from error


def _load_pair(context: ssl.SSLContext, pair: str) -> None:
    """ssl reads key pairs from files only; this one is never on a disk."""
    descriptor = os.memfd_create("client")
    try:
        os.write(descriptor, pair.encode())
        # An encrypted key would ask at the terminal for its password.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=lambda: b"")
    except (ssl.SSLError, OSError) as error:
        raise BadConfig(
            "client-certificate-data and client-key-data are no pair that we can use."
        ) from error
    finally:
        os.close(descriptor)
