"""What `ready:` prints fits, whatever the database remembers."""

import pytest

from dev.first_steps import USER, ensure_user
from gpuadmin.accounts.models import AuditEntry, User
from gpuadmin.accounts.roles import Role

pytestmark = pytest.mark.django_db


def test_a_password_that_was_lost_is_replaced_for_the_user_that_exists() -> None:
    ensure_user("the first of the demo")
    ensure_user("the first of the demo")
    ensure_user("another one of the demo")
    user = User.objects.get(username=USER)
    assert user.check_password("another one of the demo")
    assert user.groups.get().name == Role.ADMIN.label
    User.objects.update(is_active=False)
    ensure_user("another one of the demo")
    assert User.objects.get(username=USER).is_active
    written = AuditEntry.objects.order_by("at").values_list("action", flat=True)
    assert list(written) == ["user.create", "user.set-password", "user.enable"]
