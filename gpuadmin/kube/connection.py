"""How to reach a cluster: from a kubeconfig, or as a pod inside it.

Configuration and authentication are the ``kubernetes`` package's; it is imported when a connection
is made, since importing it costs a second and 30 MB that the web process need not pay at start.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuadmin.kube.errors import BadConfig
from gpuadmin.kube.guard import Guard


@dataclass(frozen=True)
class Connection:
    """One API server and how we sign in. ``authorization`` gives the header's value, if any.
    ``renew`` makes the same connection anew from where it came from, since its token may have been
    rotated there (C37); it raises ``BadConfig``.

    ``tls`` stands in place of files; ``guard`` says to which address a host may be connected.
    """

    server: str
    authorization: Callable[[], str | None]
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    server_name: str | None = None
    tls: ssl.SSLContext | None = None
    guard: Guard | None = None
    renew: Callable[[], Connection] | None = None


def from_kubeconfig(path: str | Path, context: str | None = None) -> Connection:
    """A connection by one context of a kubeconfig file (the current one when None).

    Raises ``BadConfig`` with a sentence that says what is wrong with the file.
    """
    from kubernetes.client import Configuration  # noqa: PLC0415
    from kubernetes.config import load_kube_config  # noqa: PLC0415
    from kubernetes.config.config_exception import ConfigException  # noqa: PLC0415

    if not Path(path).is_file():
        raise BadConfig(f"There is no kubeconfig at {path}. Set GPUADMIN_KUBECONFIG to one.")
    configuration = Configuration()
    try:
        load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(path),
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
    except (ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadConfig(f"The kubeconfig at {path} can't be used: {_first_line(error)}") from error
    except Exception as error:  # yaml's errors have no common public base in kubernetes.config
        raise BadConfig(f"The kubeconfig at {path} is not YAML: {_first_line(error)}") from error
    return _connection(configuration, lambda: from_kubeconfig(path, context))


def in_cluster() -> Connection:
    """A connection as this pod's ServiceAccount. Raises ``BadConfig`` outside a cluster."""
    from kubernetes.client import Configuration  # noqa: PLC0415
    from kubernetes.config import load_incluster_config  # noqa: PLC0415
    from kubernetes.config.config_exception import ConfigException  # noqa: PLC0415

    configuration = Configuration()
    try:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as error:
        raise BadConfig(
            "There is no kubeconfig and this is not a pod with a ServiceAccount. "
            "Set GPUADMIN_KUBECONFIG, or give a kubeconfig on the Set-up page. "
            f"({_first_line(error)})"
        ) from error
    return _connection(configuration, in_cluster)


def connect(kubeconfig: str, context: str | None = None) -> Connection:
    """By ``kubeconfig`` when one is given, else as a pod. Raises ``BadConfig``."""
    return from_kubeconfig(kubeconfig, context) if kubeconfig else in_cluster()


def _connection(configuration: Any, renew: Callable[[], Connection]) -> Connection:
    def authorization() -> str | None:
        value: str | None = configuration.get_api_key_with_prefix("BearerToken")
        return value or configuration.get_api_key_with_prefix("authorization")

    return Connection(
        server=str(configuration.host).rstrip("/"),
        authorization=authorization,
        ca_file=_ca_file(configuration),
        cert_file=configuration.cert_file,
        key_file=configuration.key_file,
        verify=bool(configuration.verify_ssl),
        server_name=configuration.tls_server_name,
        renew=renew,
    )


def _ca_file(configuration: Any) -> str | None:
    path: str | None = configuration.ssl_ca_cert
    return path if path and os.path.exists(path) else None


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:200]
