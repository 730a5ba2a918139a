"""A small raw Kubernetes client: the tests' own view of a cluster, simulated or real.

It shares no code with ``gpuadmin.kube``, so that what the product says can be held against it.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

CALL_SECONDS = 30.0
# Any answer of a Kubernetes API: its shape is what the tests look into.
Document = dict[str, Any]


class RefusedError(Exception):
    """The API server answered with an error; ``status`` is the HTTP status."""

    def __init__(self, call: str, answer: Answer) -> None:
        super().__init__(f"{call}: {answer.status} {answer.body.get('message', answer.body)}")
        self.status = answer.status


@dataclass(frozen=True)
class Answer:
    """One HTTP answer. A watch's is a stream of JSON lines; any other is one JSON document."""

    status: int
    text: str

    @property
    def body(self) -> Document:
        """The one document; what is not JSON (a proxy's or a health page's text) as a message."""
        try:
            found: Document = json.loads(self.text)
        except ValueError:
            return {"message": self.text}
        return found


class Client:
    """Calls one API server as the user of one kubeconfig: a token or a certificate in files."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        address = urlsplit(cluster["server"])
        self._host, self._port = address.hostname or "", address.port
        self._headers: dict[str, str] = {}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        self._tls = _tls(cluster, user) if address.scheme == "https" else None

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        patch: str = "merge",
        accept: str = "application/json",
    ) -> Answer:
        """Make one call and return its answer, whatever its status.

        ``patch`` names the kind of a PATCH: merge, strategic-merge or json. Raises OSError.
        """
        kind = f"application/{patch}-patch+json" if method == "PATCH" else "application/json"
        connection = self._connect()
        try:
            headers = self._headers | {"Content-Type": kind, "Accept": accept}
            payload = None if body is None else json.dumps(body)
            connection.request(method, path, payload, headers)
            response = connection.getresponse()
            return Answer(response.status, response.read().decode())
        finally:
            connection.close()

    def ok(self, method: str, path: str, body: object = None, *, patch: str = "merge") -> Document:
        """Make one call and return its body; raise RefusedError on an HTTP error."""
        answer = self.call(method, path, body, patch=patch)
        if answer.status >= 400:
            raise RefusedError(f"{method} {path}", answer)
        return answer.body

    def get(self, path: str) -> Document:
        """Return one object or list; raise RefusedError."""
        return self.ok("GET", path)

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=CALL_SECONDS)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=CALL_SECONDS, context=self._tls
        )


def _tls(cluster: dict[str, str], user: dict[str, str]) -> ssl.SSLContext:
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    if "client-certificate" in user:
        context.load_cert_chain(user["client-certificate"], user["client-key"])
    return context


def write_kubeconfig(path: Path, server: str, authority: Path, user: dict[str, str]) -> Path:
    """Write a kubeconfig (JSON is YAML) for one user, readable by its owner only."""
    ca = base64.b64encode(authority.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [
            {"name": "test", "cluster": {"server": server, "certificate-authority-data": ca}}
        ],
        "users": [{"name": path.stem, "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": path.stem}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=1))
    return path
