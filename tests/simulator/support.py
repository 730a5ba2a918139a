"""Plain HTTP to an API server, kubectl, and waiting."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from simulator.kubeconfig import load

Value = dict[str, Any]
T = TypeVar("T")
KUBECTL = Path(sys.executable).with_name("kubectl")


@dataclass(frozen=True)
class Answer:
    """Status code and JSON body of one response."""

    code: int
    body: Value


class Api:
    """One API server, through the token of one kubeconfig."""

    def __init__(self, kubeconfig: Path, token: str | None = None) -> None:
        connection = load(kubeconfig)
        self.server = connection.server
        self._token = connection.token if token is None else token

    def call(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> Answer:
        """One request; a refusal is an answer too."""
        data = None if body is None else json.dumps(body).encode()
        try:
            with self._open(method, path, data, content_type) as response:
                return Answer(response.status, json.loads(response.read()))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, json.loads(error.read()))

    def get(self, path: str) -> Value:
        answer = self.call("GET", path)
        assert answer.code == 200, answer.body
        return answer.body

    def create(self, path: str, body: Value) -> Value:
        answer = self.call("POST", path, body)
        assert answer.code == 201, answer.body
        return answer.body

    def merge(self, path: str, body: Value) -> Answer:
        return self.call("PATCH", path, body, "application/merge-patch+json")

    @contextmanager
    def watch(self, path: str) -> Iterator[Iterator[Value]]:
        """Events of a watch until its timeoutSeconds are over."""
        with self._open("GET", path, None, "application/json") as response:
            yield (json.loads(line) for line in response)

    def _open(self, method: str, path: str, data: bytes | None, content_type: str) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}
        request = urllib.request.Request(  # noqa: S310 - our own server
            self.server + path, data, headers, method=method
        )
        return urllib.request.urlopen(request, timeout=20)  # noqa: S310


def kubectl(kubeconfig: Path, *arguments: str, stdin: str = "") -> str:
    """What the real kubectl prints; it must succeed."""
    done = subprocess.run(
        [KUBECTL, "--kubeconfig", kubeconfig, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_for(probe: Callable[[], T], seconds: float = 10.0) -> T:
    """The first true answer of ``probe``."""
    end = time.monotonic() + seconds
    while not (found := probe()):
        assert time.monotonic() < end, f"nothing within {seconds} s"
        time.sleep(0.03)
    return found


def node(name: str, gpus: int = 2, **spec: Any) -> Value:
    """A ready node with cards, as a kubelet would write it."""
    resources = {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"capacity": resources, "allocatable": resources, "conditions": ready}
    labels = {"kubernetes.io/hostname": name}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def pod(name: str, gpus: int = 1, **spec: Any) -> Value:
    """A pod that asks for cards."""
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    container = {"name": "main", "image": "x", "resources": resources}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def condition(value: Value, type_: str) -> Value:
    """One condition of an object's status, or an empty one."""
    found = value["status"].get("conditions") or []
    return next((each for each in found if each["type"] == type_), {})
