"""A kubeconfig given in the browser or over REST: tried, kept sealed, taken up by every process."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client
from pytest_django.fixtures import Settings

from gpuadmin.accounts.models import AuditEntry
from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import Cluster, Kubeconfig
from gpuadmin.fleet.sources import Source, source_of
from gpuadmin.kube.errors import BadConfig
from gpuadmin.operations.clients import client_for
from tests.support.console import Console
from tests.support.processes import eventually, manage
from tests.support.scripted_api import ScriptedApi, node
from tests.support.tls import authority, inline
from tests.web import world
from tests.web.conftest import signed_in

pytestmark = pytest.mark.django_db
TOKEN = "the-canary-token-of-the-tests"
CA, SERVER = authority()
AtTls = Callable[[], ScriptedApi]


@pytest.fixture
def cluster(db: None, settings: Settings) -> Cluster:
    settings.KUBECONFIG, settings.LOOPBACK_CLUSTERS = "", True
    return Cluster.objects.create(name="default")


@pytest.fixture
def at_tls(tmp_path: Path) -> Iterator[AtTls]:
    """Scripted APIs behind TLS, each with the certificate of the tests' authority."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(ScriptedApi(SERVER.server_context(tmp_path)))


@pytest.fixture
def admin(cluster: Cluster) -> Client:
    return signed_in(Role.ADMIN)


def kubeconfig(api: ScriptedApi, ca: bytes = CA.certificate, **user: Any) -> str:
    server = {"server": api.url, "certificate-authority-data": inline(ca)}
    return yaml.safe_dump(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": server}],
            "users": [{"name": "u", "user": {"token": TOKEN, **user}}],
        }
    )


def try_it(client: Client, text: str) -> tuple[int, str]:
    told = client.post("/setup/kubeconfig", {"kubeconfig": text})
    return told.status_code, told.content.decode()


def offer(client: Client, text: str) -> str:
    status, page = try_it(client, text)
    assert status == 200, page
    found = re.search(r'name="offer" value="([^"]+)"', page)
    assert found
    return found[1]


def give(client: Client, api: ScriptedApi) -> None:
    told = client.post("/setup/kubeconfig", {"offer": offer(client, kubeconfig(api))})
    assert (told.status_code, told.headers["Location"]) == (303, "/setup")


def test_it_is_tried_before_it_is_kept(admin: Client, cluster: Cluster, at_tls: AtTls) -> None:
    api = at_tls()
    status, page = try_it(admin, kubeconfig(api))
    assert status == 200
    for told in (api.url, "v1.36.0-scripted", "scripted", "held"):
        assert told in page
    assert TOKEN not in page
    assert not Kubeconfig.objects.exists()
    assert source_of(cluster) == Source("", "")


def test_only_an_administrator_is_offered_to_give_one(admin: Client) -> None:
    assert "Kubeconfig…" in admin.get("/setup").content.decode()
    assert "Kubeconfig…" not in signed_in(Role.OPERATOR).get("/setup").content.decode()


def test_what_was_kept_is_used_and_never_shown(
    admin: Client, cluster: Cluster, at_tls: AtTls
) -> None:
    api = at_tls()
    give(admin, api)
    assert b"scripted" in client_for(cluster).get("/version")
    row = Kubeconfig.objects.get()
    assert (row.server, row.context, row.user) == (api.url, "c", "u")
    for address in ("/setup", "/setup/kubeconfig", "/api/v1/kubeconfig"):
        page = admin.get(address).content.decode()
        assert api.url in page or address == "/setup"
        assert TOKEN not in page
        assert row.sealed not in page
    for secret in (TOKEN, CA.certificate.decode()[60:120]):
        assert secret not in str(list(Kubeconfig.objects.values()))
        assert secret not in str(list(AuditEntry.objects.values()))
    actions = AuditEntry.objects.filter(object_kind="cluster").order_by("id")
    assert [entry.action for entry in actions] == [
        "cluster.try-kubeconfig",
        "cluster.set-kubeconfig",
    ]


def test_a_new_one_is_taken_up_by_whoever_asks_next_and_a_removed_one_is_gone(
    admin: Client, cluster: Cluster, at_tls: AtTls
) -> None:
    first, second = at_tls(), at_tls()
    for api in (first, second):
        give(admin, api)
        assert client_for(cluster).connection.server == api.url
    admin.post("/setup/kubeconfig/remove")
    assert source_of(cluster) == Source("", "")
    with pytest.raises(BadConfig, match="not a pod with a ServiceAccount"):
        client_for(cluster)
    assert AuditEntry.objects.latest("id").action == "cluster.remove-kubeconfig"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"exec": {"command": "id"}}, "“exec” runs a program on our machine"),
        ({"tokenFile": "/etc/passwd"}, "“tokenFile” names a file"),
        ({"token": None}, "neither a token nor a client certificate"),
    ],
)
def test_what_is_refused_is_a_sentence_beside_what_was_typed(
    admin: Client, at_tls: AtTls, wrong: dict[str, Any], sentence: str
) -> None:
    api = at_tls()
    status, page = try_it(admin, kubeconfig(api, **wrong))
    assert status == 422
    assert sentence in page
    assert "current-context: c" in page
    assert 'name="offer"' not in page


def test_a_server_that_another_authority_vouches_for_is_not_believed(
    admin: Client, at_tls: AtTls
) -> None:
    other = authority("another")[0].certificate
    status, page = try_it(admin, kubeconfig(at_tls(), ca=other))
    assert status == 422
    assert "CERTIFICATE_VERIFY_FAILED" in page
    assert 'name="offer"' not in page
    assert AuditEntry.objects.latest("id").outcome == "failed"


def test_this_machine_is_refused_unless_a_setting_allows_it(
    admin: Client, at_tls: AtTls, settings: Settings
) -> None:
    settings.LOOPBACK_CLUSTERS = False
    status, page = try_it(admin, kubeconfig(at_tls()))
    assert status == 422
    assert "127.0.0.1, this machine itself" in page


def test_an_offer_is_for_one_person_and_a_quarter_of_an_hour(
    admin: Client, at_tls: AtTls, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed, real = offer(admin, kubeconfig(at_tls())), time.time
    other = Client()
    other.force_login(world.person("another", Role.ADMIN))
    monkeypatch.setattr(time, "time", lambda: real() + 16 * 60)
    for client, what in ((other, sealed), (admin, sealed), (admin, sealed[:-9] + "forged==")):
        told = client.post("/setup/kubeconfig", {"offer": what})
        assert told.status_code == 422
        assert "paste the kubeconfig again" in told.content.decode()
    monkeypatch.undo()
    assert other.post("/setup/kubeconfig", {"offer": sealed}).status_code == 422
    assert not Kubeconfig.objects.exists()
    assert admin.post("/setup/kubeconfig", {"offer": sealed}).status_code == 303


def test_the_setting_wins_and_then_none_can_be_given_here(
    admin: Client, cluster: Cluster, at_tls: AtTls, settings: Settings
) -> None:
    api = at_tls()
    give(admin, api)
    settings.KUBECONFIG, settings.KUBE_CONTEXT = "/etc/kubeconfig", "prod"
    assert source_of(cluster) == Source("/etc/kubeconfig", "prod")
    status, page = try_it(admin, kubeconfig(api))
    assert status == 422
    assert "GPUADMIN_KUBECONFIG is set" in page
    assert "<textarea" not in admin.get("/setup/kubeconfig").content.decode()


def test_another_secret_key_opens_nothing_and_says_what_to_do(
    admin: Client, cluster: Cluster, at_tls: AtTls, settings: Settings
) -> None:
    give(admin, at_tls())
    settings.SECRET_KEY = "another key than when it was given"
    with pytest.raises(BadConfig, match="Give it again on the Set-up page"):
        source_of(cluster).connect()


def test_rest_tries_keeps_tells_and_forgets(admin: Client, cluster: Cluster, at_tls: AtTls) -> None:
    api = at_tls()
    sent = {"kubeconfig": kubeconfig(api)}
    tried = admin.post("/api/v1/kubeconfig/preview", sent, "application/json").json()
    assert (tried["server"], tried["account"], tried["problem"]) == (api.url, "scripted", None)
    assert {"name": "read", "held": True} in tried["components"]
    kept = admin.put("/api/v1/kubeconfig", {"offer": tried["offer"]}, "application/json")
    assert kept.json() | {"given_at": ""} == {
        "server": api.url,
        "context": "c",
        "user": "u",
        "given_by": "admin",
        "given_at": "",
    }
    assert client_for(cluster).connection.server == api.url
    assert admin.delete("/api/v1/kubeconfig").status_code == 204
    for method in (admin.get, admin.delete):
        assert method("/api/v1/kubeconfig").status_code == 404

    bad = admin.post("/api/v1/kubeconfig/preview", {"kubeconfig": "{"}, "application/json")
    assert (bad.status_code, list(bad.json()["errors"])) == (422, ["kubeconfig"])


@pytest.mark.django_db(transaction=True)
def test_a_running_watcher_goes_over_to_a_new_kubeconfig_by_itself(
    cluster: Cluster,
    at_tls: AtTls,
    process_environ: dict[str, str],
    tmp_path: Path,
    settings: Settings,
) -> None:
    settings.SECRET_KEY = process_environ["GPUADMIN_SECRET_KEY"]
    admin = signed_in(Role.ADMIN)
    first, second = at_tls(), at_tls()
    first.nodes.pages, second.nodes.pages = [[node("n1")]], [[node("n2")]]
    console = Console()
    environ = process_environ | {"GPUADMIN_LOOPBACK_CLUSTERS": "true"}
    with manage("watch", environ=environ, log=tmp_path / "watch.log"):
        give(admin, first)
        eventually(lambda: console.by("nodes").keys() == {"n1"}, seconds=40)
        give(admin, second)
        eventually(lambda: console.by("nodes").keys() == {"n2"}, seconds=40)
        assert console.one("clusters", "default")["server"] == second.url
