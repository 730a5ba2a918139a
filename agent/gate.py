"""Who may ask: the token of the hour (design.md section 9, agent.contract.token)."""

from __future__ import annotations

import threading

from agent.config import AgentConfig
from agent.contract.token import token_hour


class TokenGate:
    """Accepts genuine tokens whose hour is no older than the newest accepted, minus one.

    The node's own clock plays no part: a wrong one must not lock the server out (C45).
    """

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._newest_hour = 0

    def admits(self, token: str) -> bool:
        """Whether ``token`` is genuine, for this pod on this node, and not too old."""
        config = self._config
        hour = token_hour(config.secret, config.pod_uid, config.node_name, token)
        if hour is None:
            return False
        with self._lock:
            if hour < self._newest_hour - 1:
                return False
            self._newest_hour = max(self._newest_hour, hour)
            return True
