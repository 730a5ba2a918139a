"""Where a server that somebody typed in may be: not on this machine, nor where clouds keep secrets.

Private addresses are allowed, since most API servers have one. A name is resolved by us, each of
its addresses is judged, and the connection is made to the address that was judged: a name that
answers otherwise the next time changes nothing (faults.md, security test b).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPSConnectionPool
from urllib3.exceptions import NewConnectionError
from urllib3.util.connection import create_connection

from gpuadmin.kube.errors import BadConfig

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Guard = Callable[[str, int], str]
# Where clouds tell a machine its own credentials, outside the link-local network.
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def check_address(server: str) -> None:
    """The form of an address alone. Raises ``BadConfig``."""
    parts = _split(server)
    if parts.scheme != "https":
        raise BadConfig("The server must be an https:// address: anything else shows the token.")
    if parts.username is not None or parts.query or parts.fragment or not parts.hostname:
        raise BadConfig("The server must be https://host:port, without a user, ? or #.")


def external(host: str, port: int) -> str:
    """The address to connect to for ``host``. Raises ``BadConfig`` for one that is forbidden."""
    return _judged(host, port, loopback=False)


def external_or_loopback(host: str, port: int) -> str:
    """The same for trying out on one machine (GPUADMIN_LOOPBACK_CLUSTERS)."""
    return _judged(host, port, loopback=True)


def guarded_pool(guard: Guard) -> type[HTTPSConnectionPool]:
    """urllib3's pool, whose connections go only where ``guard`` lets them."""

    class Connection(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            try:
                address = guard(self._dns_host, self.port)
                return create_connection(
                    (address, self.port), self.timeout, socket_options=self.socket_options
                )
            except BadConfig as error:
                raise NewConnectionError(self, error.sentence) from error
            except OSError as error:
                raise NewConnectionError(self, str(error)) from error

    class Pool(HTTPSConnectionPool):
        ConnectionCls = Connection

    return Pool


def _judged(host: str, port: int, *, loopback: bool) -> str:
    """Every address of the name is judged: one bad one is enough to refuse it."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise BadConfig(f"The name {host[:253]} can't be resolved.") from error
    addresses = [str(each[4][0]) for each in found]
    for text in addresses:
        if why := forbidden(ipaddress.ip_address(text.partition("%")[0]), loopback=loopback):
            raise BadConfig(f"{host[:253]} is {text}, {why}: no API server for us is there.")
    return addresses[0]


def forbidden(address: Address, *, loopback: bool) -> str:
    """Why nobody may send us there; "" for a good one. An IPv4 address inside IPv6 counts as it."""
    address = _inner(address) or address
    if address.is_loopback:
        return "" if loopback else "this machine itself"
    nowhere = address.is_unspecified or (address.version == 4 and int(address) < 1 << 24)
    reasons = {
        "where a cloud keeps its machines' credentials": address in _METADATA,
        "a link-local address": address.is_link_local,
        "the unspecified address": nowhere,
        "a multicast or reserved address": address.is_multicast or address.is_reserved,
    }
    return next((why for why, true in reasons.items() if true), "")


def _inner(address: Address) -> ipaddress.IPv4Address | None:
    if not isinstance(address, ipaddress.IPv6Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)


def _split(server: str) -> SplitResult:
    try:
        parts = urlsplit(server)
        _ = parts.port  # raises for what is no port
    except ValueError as error:
        raise BadConfig("The server is not an address.") from error
    return parts
