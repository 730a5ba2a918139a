"""Users and My account, through the pages."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gpuadmin.accounts.audit import COMMAND
from gpuadmin.accounts.models import AccessToken, AuditEntry, User
from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.services import create_user
from gpuadmin.accounts.tokens import create_token
from gpuadmin.fleet.models import Cluster
from tests.web.conftest import signed_in
from tests.web.test_pages import text

pytestmark = pytest.mark.django_db
PASSWORD, OTHER = "a good password", "another good password"
SHEET = {"HX-Request": "true", "HX-Target": "sheet"}


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(name="lab")


@pytest.fixture
def admin(cluster: Cluster) -> Client:
    return signed_in(Role.ADMIN)


@pytest.fixture
def osei(cluster: Cluster) -> Client:
    create_user(COMMAND, "k.osei", Role.OPERATOR, PASSWORD)
    client = Client()
    client.post("/sign-in", {"username": "k.osei", "password": PASSWORD})
    return client


def test_an_administrator_adds_a_user_who_signs_in(admin: Client) -> None:
    form = {"name": "m.ruiz", "role": "operator", "password": PASSWORD}
    told = admin.post("/new-user", form, follow=True)
    assert "The user can sign in now." in told.content.decode()
    assert "m.ruiz" in text(admin, "/users")
    client = Client()
    assert client.post("/sign-in", {"username": "m.ruiz", "password": PASSWORD}).status_code == 302
    assert "m.ruiz · operator" in text(client, "/")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"name": "admin"}, "already exists"),
        ({"name": "a b"}, "Enter a valid username"),
        ({"password": "x7!q"}, "too short"),
        ({"password": "m.ruiz123"}, "too similar to the username"),
        ({"role": "root"}, "There is no role “root”"),
    ],
)
def test_what_is_wrong_is_said_at_the_field_and_nothing_typed_is_lost(
    admin: Client, wrong: dict[str, str], sentence: str
) -> None:
    form = {"name": "m.ruiz", "role": "operator", "password": PASSWORD} | wrong
    told = admin.post("/new-user", form, headers=SHEET)
    page = told.content.decode()
    assert told.status_code == 422
    assert re.search(rf'class="error"[^>]*>[^<]*{sentence}', page)
    assert f'value="{form["name"]}"' in page
    assert form["password"] not in page
    assert not User.objects.filter(username="m.ruiz").exists()


def test_a_new_role_holds_from_the_next_request_on(admin: Client, osei: Client) -> None:
    assert osei.get("/nodes/taint").status_code == 200
    admin.post("/users/k.osei/role", {"role": "viewer"})
    assert osei.get("/nodes/taint").status_code == 403
    assert "k.osei · viewer" in text(osei, "/")


def test_whoever_is_disabled_is_out_and_the_row_stays(admin: Client, osei: Client) -> None:
    create_token(COMMAND, "k.osei", "ci", cap=None, days=None)
    told = admin.post("/users/k.osei/disable", follow=True).content.decode()
    assert "Enable k.osei" in told
    assert osei.get("/").status_code == 302
    assert not AccessToken.objects.exists()
    told = admin.post("/users/k.osei/enable", follow=True).content.decode()
    assert "Disable k.osei" in told


def test_the_last_administrator_is_told_why_not(admin: Client) -> None:
    for change, form in (("disable", {}), ("role", {"role": "viewer"})):
        told = admin.post(f"/users/admin/{change}", form, headers=SHEET)
        assert told.status_code == 422
        assert "admin is the last active administrator" in told.content.decode()
    assert admin.get("/users").status_code == 200


def test_a_password_set_by_an_administrator_ends_the_sessions(admin: Client, osei: Client) -> None:
    admin.post("/users/k.osei/password", {"password": OTHER})
    assert osei.get("/").status_code == 302
    assert User.objects.get(username="k.osei").check_password(OTHER)


def test_a_changed_password_keeps_this_session_under_a_new_id_and_ends_the_others(
    osei: Client,
) -> None:
    elsewhere = Client()
    elsewhere.post("/sign-in", {"username": "k.osei", "password": PASSWORD})
    before = osei.cookies["sessionid"].value
    form = {"old": PASSWORD, "password": OTHER, "again": OTHER}
    told = osei.post("/account/password", form, follow=True)
    assert "Your password is changed" in told.content.decode()
    assert osei.cookies["sessionid"].value != before
    assert elsewhere.get("/").status_code == 302
    row = AuditEntry.objects.get(action="user.set-password")
    assert OTHER not in str(row.detail) + row.reason


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"old": "wrong"}, "This is not your present password"),
        ({"again": "something else"}, "The two are not the same"),
        ({"password": "password", "again": "password"}, "too common"),
    ],
)
def test_a_password_is_not_changed_by_mistake(
    osei: Client, form: dict[str, str], sentence: str
) -> None:
    told = osei.post(
        "/account/password", {"old": PASSWORD, "password": OTHER, "again": OTHER} | form
    )
    assert told.status_code == 422
    assert sentence in told.content.decode()
    assert User.objects.get(username="k.osei").check_password(PASSWORD)


def test_a_token_is_shown_once_and_does_what_its_cap_lets_it(osei: Client) -> None:
    form = {"name": "pipeline <b>", "cap": "viewer", "days": "30"}
    told = osei.post("/account/new-token", form, headers=SHEET)
    found = re.search(r">(gpa_\w+)<", told.content.decode())
    assert found
    assert told.headers["Cache-Control"].count("no-store")
    api = Client(headers={"Authorization": f"Bearer {found[1]}"})
    assert api.get("/api/v1/nodes").status_code == 200
    assert api.post("/api/v1/operations/preview", {}, "application/json").status_code != 200
    page = osei.get("/account").content.decode()
    assert found[1] not in page
    assert "pipeline &lt;b&gt;" in page
    assert "at most viewer" in page

    osei.post("/account/revoke-token", {"token": "pipeline <b>"})
    assert api.get("/api/v1/nodes").status_code == 401


@pytest.mark.parametrize("days", ["0", "-1", "3651", "many", ""])
def test_a_token_lives_for_a_number_of_days(osei: Client, days: str) -> None:
    told = osei.post("/account/new-token", {"name": "n", "days": days})
    assert told.status_code == 422
    assert "Choose from 1 to 3650 days" in told.content.decode()


def test_one_of_my_sessions_can_be_ended_from_another_and_nobody_elses(
    admin: Client, osei: Client
) -> None:
    elsewhere = Client(headers={"User-Agent": "Mozilla/5.0 (X11; Linux) Firefox/150.0"})
    elsewhere.post("/sign-in", {"username": "k.osei", "password": PASSWORD})
    page = osei.get("/account").content.decode()
    assert "Firefox on Linux" in page
    assert "this one" in page
    other = re.findall(r'name="session" value="(\w+)"', page)
    assert len(other) == 1
    theirs = User.objects.get(username="admin").sessions.get().public_id
    assert osei.post("/account/end-session", {"session": theirs}).status_code == 422
    assert admin.get("/").status_code == 200
    osei.post("/account/end-session", {"session": other[0]})
    assert elsewhere.get("/").status_code == 302
    assert osei.get("/").status_code == 200


def test_signing_out_everywhere_ends_this_session_too(osei: Client) -> None:
    create_token(COMMAND, "k.osei", "ci", cap=None, days=None)
    elsewhere = Client()
    elsewhere.post("/sign-in", {"username": "k.osei", "password": PASSWORD})
    told = osei.post("/account/end-session", {"all": "1", "tokens": "1"})
    assert told.headers["Location"] == "/sign-in"
    assert osei.get("/").status_code == elsewhere.get("/").status_code == 302
    assert not AccessToken.objects.exists()


def test_the_list_of_users_takes_as_many_queries_for_thirty_as_for_three(
    admin: Client,
) -> None:
    counts = []
    for known in (3, 30):
        for number in range(User.objects.count(), known):
            create_user(COMMAND, f"user-{number}", Role.VIEWER, PASSWORD)
        admin.get("/users")
        with CaptureQueriesContext(connection) as queries:
            admin.get("/users")
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_only_an_administrator_sees_the_way_to_the_users(admin: Client, osei: Client) -> None:
    assert 'href="/users"' in admin.get("/").content.decode()
    assert 'href="/users"' not in osei.get("/").content.decode()
    assert 'href="/account"' in osei.get("/").content.decode()


def test_a_page_that_is_open_when_the_role_goes_loads_itself_again_and_says_so(
    admin: Client, osei: Client
) -> None:
    """Fault 22: the next poll and the next action of an open page are refused."""
    page = osei.get("/findings").content.decode()
    shown = re.search(r'data-hash="(\w+)"', page)
    assert shown
    poll = {"HX-Request": "true", "HX-Target": "live", "If-None-Match": shown[1]}
    assert osei.get("/findings", headers=poll).status_code == 204
    admin.post("/users/k.osei/role", {"role": "none"})
    told = osei.get("/findings", headers=poll)
    assert (told.status_code, told.headers["HX-Refresh"]) == (403, "true")
    assert "has no role here" in osei.get("/findings").content.decode()
    assert osei.post("/nodes/taint", {"node": "n"}, headers=SHEET).status_code == 403

    admin.post("/users/k.osei/role", {"role": "operator"})
    admin.post("/users/k.osei/sign-out")
    told = osei.get("/findings", headers=poll)
    assert told.headers["HX-Redirect"] == "/sign-in?next=/findings"
