"""Per-node tokens: ``<hour>.<mac>`` in the header ``X-Gpuadmin-Token`` (design.md section 9).

The secret is shared by the server and the agents' DaemonSet; a token is good for one pod on one
node and about two hours. The agent doesn't trust its node's clock (C45): it takes the hour stated
in the token and refuses hours older than the newest it accepted, minus one.
"""

from __future__ import annotations

import hashlib
import hmac

HOUR_SECONDS = 3600


def make_token(secret: bytes, pod_uid: str, node_name: str, unix_seconds: float) -> str:
    """The token for one agent in the hour of ``unix_seconds`` (the server's clock)."""
    hour = int(unix_seconds // HOUR_SECONDS)
    return f"{hour}.{_mac(secret, pod_uid, node_name, hour)}"


def token_hour(secret: bytes, pod_uid: str, node_name: str, token: str) -> int | None:
    """The hour a genuine token was made for, or None for a forged or malformed one."""
    head, _, mac = token.partition(".")
    if not (head.isascii() and head.isdigit() and len(head) <= 9):
        return None
    hour = int(head)
    good = hmac.compare_digest(_mac(secret, pod_uid, node_name, hour).encode(), mac.encode())
    return hour if good else None


def _mac(secret: bytes, pod_uid: str, node_name: str, hour: int) -> str:
    message = "\0".join((pod_uid, node_name, str(hour))).encode()
    return hmac.new(secret, message, hashlib.sha256).hexdigest()
