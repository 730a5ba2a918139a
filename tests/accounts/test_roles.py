"""Roles and permissions, and the page that explains them."""

from pathlib import Path

import pytest
from django.test import RequestFactory

from gpuadmin.accounts.access import Refused, actor_of, may, require, role_of
from gpuadmin.accounts.audit import COMMAND, Subject
from gpuadmin.accounts.models import AccessToken, AuditEntry, User
from gpuadmin.accounts.roles import Permission, Role
from gpuadmin.accounts.services import set_role
from gpuadmin.accounts.tokens import create_token

pytestmark = pytest.mark.django_db
DOCS = Path(__file__).parents[2] / "docs" / "permissions.md"


def user_with(role: Role) -> User:
    user = User.objects.create_user(f"a-{role.label or 'stranger'}")
    if role is not Role.NONE:
        set_role(COMMAND, user.username, role)
    return user


def request_of(user: User, token: AccessToken | None = None) -> object:
    request = RequestFactory().get("/", REMOTE_ADDR="10.0.0.9")
    request.user = user
    request.auth = token  # type: ignore[attr-defined]
    return request


@pytest.mark.parametrize("permission", Permission)
@pytest.mark.parametrize("role", Role)
def test_each_permission_is_refused_below_its_least_role_and_audited(
    role: Role, permission: Permission
) -> None:
    actor = actor_of(request_of(user_with(role)))
    before = AuditEntry.objects.count()
    if role >= permission.least:
        require(actor, permission)
        assert may(actor, permission)
        assert AuditEntry.objects.count() == before
        return
    with pytest.raises(Refused):
        require(actor, permission, Subject("node", "u1", "h100-01"))
    row = AuditEntry.objects.latest("id")
    assert (row.action, row.outcome, row.object_name) == (permission.key, "refused", "h100-01")
    assert (row.actor_name, row.role, row.address) == (actor.name, role.label, "10.0.0.9")


def test_a_user_without_a_group_is_told_how_to_get_a_role() -> None:
    with pytest.raises(Refused, match=r"has no role here.*set-role a-stranger viewer"):
        require(actor_of(request_of(user_with(Role.NONE))), Permission.VIEW)


def test_a_user_without_a_role_fills_no_table_by_asking_again_and_again() -> None:
    stranger, viewer = (actor_of(request_of(user_with(role))) for role in (Role.NONE, Role.VIEWER))
    for _ in range(5):
        for permission in (Permission.VIEW, Permission.TAINT):
            with pytest.raises(Refused):
                require(stranger, permission)
        with pytest.raises(Refused):
            require(viewer, Permission.TAINT)
    rows = AuditEntry.objects.filter(outcome="refused")
    assert sorted(rows.filter(actor=stranger.user).values_list("action", flat=True)) == [
        "operate.taint",
        "view",
    ]
    assert rows.filter(actor=viewer.user).count() == 5


@pytest.mark.parametrize(
    ("role", "cap", "left"),
    [
        (Role.ADMIN, Role.VIEWER, Role.VIEWER),
        (Role.VIEWER, Role.ADMIN, Role.VIEWER),
        (Role.OPERATOR, None, Role.OPERATOR),
        (Role.NONE, Role.ADMIN, Role.NONE),
    ],
)
def test_a_token_can_only_lower_its_owners_role(role: Role, cap: Role | None, left: Role) -> None:
    user = user_with(role)
    create_token(COMMAND, user.username, "ci", cap=cap, days=None)
    token = AccessToken.objects.get(user=user)
    assert role_of(user, token) is left
    assert actor_of(request_of(user, token)).via == "token:ci"


def test_a_new_role_replaces_the_old_one_and_leaves_other_groups() -> None:
    user = user_with(Role.OPERATOR)
    user.groups.create(name="on-call")
    set_role(COMMAND, user.username, Role.VIEWER)
    assert sorted(user.groups.values_list("name", flat=True)) == ["on-call", "viewer"]


def test_permissions_md_lists_every_permission_with_its_least_role() -> None:
    people, _, _ = DOCS.read_text("utf-8").partition("## What gpuadmin may do in the cluster")
    rows = [line for line in people.splitlines() if line.startswith("| `")]
    expected = [f"| `{p.key}` | {p.least.label} | {p.sentence} |" for p in Permission]
    assert rows == expected
