"""What our account may do, by the API server's own word, and who the server takes us for.

SelfSubjectAccessReview and SelfSubjectReview change nothing: every authenticated account may post
them (contracts: ``system:basic-user``).
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from gpuadmin.kube.client import KubeClient, decode
from gpuadmin.kube.errors import KubeError

T = TypeVar("T")
_ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_SERVICE_ACCOUNT = "system:serviceaccount:"
MOST_AT_ONCE = 8


@dataclass(frozen=True)
class Need:
    """One thing that we must be able to do. ``namespace`` "": in the whole cluster; a subresource
    stands behind a stroke: ``pods/eviction``.
    """

    verb: str
    resource: str
    purpose: str
    group: str = ""
    namespace: str = ""
    optional: bool = False

    @property
    def rule(self) -> str:
        """As kubectl writes it: ``daemonsets.apps``."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


@dataclass(frozen=True)
class Answer:
    """``allowed`` is None when the server did not say; ``reason`` says why."""

    need: Need
    allowed: bool | None
    reason: str = ""


@dataclass(frozen=True)
class Identity:
    """Who the server takes us for; ``name`` is None when it does not say."""

    name: str | None
    groups: tuple[str, ...] = ()
    version: str | None = None
    error: str = ""


class _Verdict(msgspec.Struct):
    allowed: bool = False
    reason: str = ""


class _AccessReview(msgspec.Struct):
    status: _Verdict


class _UserInfo(msgspec.Struct):
    username: str | None = None
    groups: list[str] | None = None


class _SelfStatus(msgspec.Struct, rename="camel"):
    user_info: _UserInfo = msgspec.field(default_factory=_UserInfo)


class _SelfReview(msgspec.Struct):
    status: _SelfStatus


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


def review(client: KubeClient, needs: Sequence[Need]) -> list[Answer]:
    """One answer per need, in their order, asked at the same time. Raises nothing."""
    with ThreadPoolExecutor(max_workers=max(1, min(MOST_AT_ONCE, len(needs)))) as pool:
        return list(pool.map(lambda need: _ask(client, need), needs))


def whoami(client: KubeClient) -> Identity:
    """Our account's name and the server's version. Raises nothing."""
    try:
        version = decode(client.get("/version"), _Version).git_version
    except KubeError as error:
        return Identity(None, error=error.sentence)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        user = decode(client.post(_WHO, body), _SelfReview).status.user_info
    except KubeError as error:
        return Identity(None, version=version, error=error.sentence)
    return Identity(user.username, tuple(user.groups or ()), version)


def _ask(client: KubeClient, need: Need) -> Answer:
    resource, _, subresource = need.resource.partition("/")
    attributes = {
        "verb": need.verb,
        "group": need.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": need.namespace,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    try:
        verdict = decode(client.post(_ACCESS, body), _AccessReview).status
    except KubeError as error:
        return Answer(need, None, error.sentence)
    return Answer(need, verdict.allowed, verdict.reason)


def grant_command(verbs: Sequence[str], need: Need, account: str) -> str:
    """The kubectl line that grants ``verbs`` on the need's resource to ``account``."""
    about = need.resource.replace("/", "-")
    name = f"gpuadmin-{about}-{verbs[0] if len(verbs) == 1 else 'read'}"
    where = f" -n {need.namespace}" if need.namespace else ""
    role = "role" if need.namespace else "clusterrole"
    made = f"kubectl create {role} {name}{where} --verb={','.join(verbs)} --resource={need.rule}"
    bound = f"kubectl create {role}binding {name}{where} --{role}={name} {_subject(account)}"
    return f"{made} && {bound}"


def _subject(account: str) -> str:
    """The account's name comes from a token or an identity provider, and the line gets pasted."""
    if account.startswith(_SERVICE_ACCOUNT):
        return f"--serviceaccount={shlex.quote(account.removeprefix(_SERVICE_ACCOUNT))}"
    return f"--user={shlex.quote(account)}"


class Remembered(Generic[T]):
    """A value that is asked for again after ``seconds``, by one caller at a time.

    That caller waits at most ``patience_seconds``; it and all others get the old value meanwhile,
    None when there is none yet. So a server that hangs never holds up more than one of them.
    """

    def __init__(
        self,
        ask: Callable[[], T],
        seconds: float,
        *,
        patience_seconds: float = 4.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask, self._seconds, self._clock = ask, seconds, clock
        self._patience = patience_seconds
        self._lock = threading.Lock()
        self._asking = False
        self._at: float | None = None
        self._value: T | None = None

    def __call__(self) -> T | None:
        with self._lock:
            fresh = self._at is not None and self._clock() - self._at <= self._seconds
            if fresh or self._asking:
                return self._value
            self._asking = True
        thread = threading.Thread(target=self._renew, daemon=True)
        thread.start()
        thread.join(self._patience)
        return self._value

    def _renew(self) -> None:
        try:
            self._value, self._at = self._ask(), self._clock()
        finally:
            self._asking = False
