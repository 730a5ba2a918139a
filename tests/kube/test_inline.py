"""A kubeconfig that somebody typed in: what is read of it, and everything that is refused."""

from __future__ import annotations

import base64
import socket
import time
from typing import Any

import pytest
import yaml

from gpuadmin.kube import guard
from gpuadmin.kube.client import KubeClient
from gpuadmin.kube.errors import BadConfig, Unreachable
from gpuadmin.kube.inline import MAX_BYTES, read
from tests.support.tls import authority, inline

Json = dict[str, Any]
CA, LEAF = authority()


def kubeconfig(cluster: Json | None = None, user: Json | None = None, **top: Any) -> str:
    """One context with a server and a token, and what a test changes of it."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "prod",
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [
            {
                "name": "c",
                "cluster": {
                    "server": "https://10.0.0.1:6443",
                    "certificate-authority-data": inline(CA.certificate),
                    **(cluster or {}),
                },
            }
        ],
        "users": [{"name": "u", "user": {"token": "t0ken", **(user or {})}}],
        **top,
    }
    return yaml.safe_dump(config)


def test_the_chosen_context_is_read_and_nothing_else_is_kept() -> None:
    others = [{"name": "other", "user": {"exec": {"command": "rm"}}}]
    text = kubeconfig(users=[{"name": "u", "user": {"token": "t0ken"}}, *others])
    found = read(text)
    assert (found.server, found.context, found.user) == ("https://10.0.0.1:6443", "prod", "u")
    assert found.token == "t0ken"
    assert found.ca == CA.certificate.decode()
    assert "t0ken" not in repr(found)


def test_a_client_certificate_is_taken_inline_and_never_touches_a_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = {
        "token": None,
        "client-certificate-data": inline(LEAF.certificate),
        "client-key-data": inline(LEAF.key),
    }
    monkeypatch.setattr("tempfile.mkstemp", None)
    found = read(kubeconfig(user=pair))
    assert found.connection(guard.external).tls is not None
    for missing in ("client-certificate-data", "client-key-data"):
        with pytest.raises(BadConfig, match="belong together"):
            read(kubeconfig(user=pair | {missing: None}))
    other = authority("another")[1]
    with pytest.raises(BadConfig, match="are no pair"):
        read(kubeconfig(user=pair | {"client-key-data": inline(other.key)}))


@pytest.mark.parametrize(
    ("part", "key", "value", "sentence"),
    [
        ("user", "exec", {"command": "aws", "args": ["token"]}, "runs a program on our machine"),
        ("user", "auth-provider", {"name": "gcp"}, "runs a program's part of kubectl"),
        ("user", "tokenFile", "/var/run/secrets/token", "names a file"),
        ("user", "client-certificate", "/etc/passwd", "names a file"),
        ("user", "client-key", "/root/.ssh/id_rsa", "names a file"),
        ("user", "username", "admin", "basic sign-in"),
        ("user", "as", "system:admin", "act as somebody else"),
        ("user", "impersonate", "x", "is nothing that we read"),
        ("cluster", "certificate-authority", "/etc/shadow", "names a file"),
        ("cluster", "insecure-skip-tls-verify", True, "to whoever answers"),
        ("cluster", "proxy-url", "http://proxy", "through a proxy"),
    ],
)
def test_whatever_is_no_inline_data_is_refused_by_name(
    part: str, key: str, value: Any, sentence: str
) -> None:
    with pytest.raises(BadConfig, match=sentence) as refused:
        read(kubeconfig(**{part: {key: value}}))
    assert f"“{key}”" in refused.value.sentence


def test_each_thing_that_is_wrong_has_its_sentence() -> None:
    with pytest.raises(BadConfig) as refused:
        read(kubeconfig(cluster={"proxy-url": "http://p"}, user={"exec": {}, "tokenFile": "/t"}))
    assert refused.value.sentence.count("“") == 2, "an empty exec runs nothing"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is not what a kubeconfig has there"),
        ("[1, 2]", "is not what a kubeconfig has there"),
        ("a: [", r"not YAML that we read \(line"),
        ("!!python/object/apply:os.system ['id']", "not YAML that we read"),
        ("[" * 30_000, "not YAML that we read"),
        ("a: &a [x]\nb: *a", "Aliases"),
        ("a: 2026-13-45", "not YAML that we read"),
        ("x" * (MAX_BYTES + 1), "larger than 64 KiB"),
        ("\0", "not YAML that we read"),
        ("{}", "has no current-context"),
        ("current-context: [x]", "has no current-context"),
        ("current-context: x\ncontexts: 7", "has no context named “x”"),
        ("current-context: x\ncontexts: [7, {name: x, context: 7}]", "The context “x” is not"),
        (kubeconfig(clusters=[]), "has no cluster named “c”"),
        (kubeconfig(users=None), "has no user named “u”"),
        (kubeconfig(cluster={"server": None}), "has no server"),
        (kubeconfig(cluster={"server": 7}), "server must be text"),
        (kubeconfig(cluster={"certificate-authority-data": "%"}), "is not base64"),
        (
            kubeconfig(cluster={"certificate-authority-data": base64.b64encode(b"x").decode()}),
            "is no certificate",
        ),
        (kubeconfig(user={"token": None}), "neither a token nor a client certificate"),
        (kubeconfig(user={"token": "a\nHost: b"}), "characters that no token has"),
    ],
)
def test_what_is_no_kubeconfig_is_one_sentence_at_once(text: str, sentence: str) -> None:
    began = time.monotonic()
    with pytest.raises(BadConfig, match=sentence):
        read(text)
    assert time.monotonic() - began < 5


def test_a_bomb_of_aliases_is_refused_before_it_unfolds() -> None:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(BadConfig, match="Aliases"):
        read("\n".join(lines))


@pytest.mark.parametrize(
    "server",
    [
        "http://10.0.0.1:6443",
        "10.0.0.1:6443",
        "file:///etc/passwd",
        "gopher://10.0.0.1",
        "https://user@10.0.0.1",
        "https://user:pw@10.0.0.1",
        "https://10.0.0.1/?a",
        "https://10.0.0.1/#a",
        "https://",
        "https://10.0.0.1:99999",
        "https://[::1",
    ],
)
def test_a_server_is_an_https_address_and_nothing_more(server: str) -> None:
    with pytest.raises(BadConfig):
        read(kubeconfig(cluster={"server": server}))


FORBIDDEN = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "localhost",
    "[::1]",
    "[::]",
    "0.0.0.0",
    "0.1.2.3",
    "169.254.169.254",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "224.0.0.1",
    "255.255.255.255",
    "[::ffff:127.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[::127.0.0.1]",
]


@pytest.mark.parametrize("host", FORBIDDEN)
def test_no_request_goes_to_this_machine_or_to_a_clouds_metadata(host: str) -> None:
    """Security test b, for the server of a kubeconfig: refused before a socket is opened."""
    found = read(kubeconfig(cluster={"server": f"https://{host}:1"}))
    with pytest.raises(Unreachable, match="no API server for us is there"):
        KubeClient(found.connection(guard.external)).get("/version")


@pytest.mark.parametrize(
    "address", ["10.1.2.3", "192.168.0.1", "172.16.0.1", "100.64.0.1", "fd00::1"]
)
def test_private_addresses_are_where_api_servers_are(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert guard.external(address, 6443) == address


def test_the_address_that_was_judged_is_the_one_that_is_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name that is good when it is looked at and 127.0.0.1 a moment later."""
    answers = iter(["198.18.0.1", "127.0.0.1"])

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    reached = []

    def connect(address: tuple[str, int], *_: Any, **__: Any) -> socket.socket:
        reached.append(address[0])
        raise OSError("nobody is there")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(guard, "create_connection", connect)
    client = KubeClient(
        read(kubeconfig(cluster={"server": "https://api.example.org:1"})).connection(guard.external)
    )
    with pytest.raises(Unreachable, match="nobody is there"):
        client.get("/version")
    with pytest.raises(Unreachable, match="no API server for us is there"):
        client.get("/version")
    assert reached == ["198.18.0.1"]


def test_one_bad_address_of_a_name_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(socket.AF_INET, 1, 6, "", (ip, 1)) for ip in ("10.0.0.1", "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    with pytest.raises(BadConfig, match=r"127\.0\.0\.1, this machine itself"):
        guard.external("api.example.org", 1)
