"""The audit table only grows, and sign-ins that fail are in it."""

import pytest
from django.contrib.auth import authenticate
from django.db import DatabaseError, connection, transaction
from django.test import Client, RequestFactory

from gpuadmin.accounts.audit import COMMAND, Outcome, Subject, audit
from gpuadmin.accounts.models import AuditEntry, User

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts_auditentry SET reason = 'another'",
        "DELETE FROM accounts_auditentry",
        "TRUNCATE accounts_auditentry",
    ],
)
def test_the_database_refuses_to_change_or_empty_the_audit_table(statement: str) -> None:
    audit(COMMAND, "taint.add", Outcome.DONE, Subject("node", "u1", "h100-01"), reason="test")
    connection.check_constraints()  # or TRUNCATE would stop at the pending foreign key instead
    with (
        pytest.raises(DatabaseError, match="audit rows are never changed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    assert AuditEntry.objects.get().reason == "test"


def test_a_user_named_in_the_audit_cannot_be_deleted() -> None:
    user = User.objects.create_user("k.osei", password="a good password")
    Client().force_login(user)
    assert AuditEntry.objects.get(action="sign-in").actor == user
    with pytest.raises(Exception, match="protected"):
        user.delete()


def test_a_failed_sign_in_is_audited_with_the_name_typed_and_the_address() -> None:
    request = RequestFactory().post("/sign-in", REMOTE_ADDR="10.1.2.3")
    assert authenticate(request, username="nobody", password="wrong") is None
    row = AuditEntry.objects.get()
    assert (row.action, row.outcome, row.actor) == ("sign-in", "refused", None)
    assert (row.object_name, row.address) == ("nobody", "10.1.2.3")
    assert "wrong" not in str(row.detail) + row.reason


def test_the_sixth_wrong_password_is_refused_by_the_lock_and_audited_too() -> None:
    User.objects.create_user("k.osei", password="a good password")
    for _ in range(5):
        _sign_in("wrong")
    assert _sign_in("a good password") is None
    assert AuditEntry.objects.filter(action="sign-in", outcome="refused").count() == 6


def _sign_in(password: str) -> object:
    request = RequestFactory().post("/sign-in", REMOTE_ADDR="10.1.2.3")
    return authenticate(request, username="k.osei", password=password)
