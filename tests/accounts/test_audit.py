"""The audit table only grows."""

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client

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
