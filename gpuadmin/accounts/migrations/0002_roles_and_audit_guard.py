"""The three groups, and an audit table to which rows can only be added."""

from typing import Any

from django.db import migrations

GUARD = """
CREATE FUNCTION accounts_refuse_to_rewrite_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit rows are never changed: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER audit_rows_stay BEFORE UPDATE OR DELETE ON accounts_auditentry
    FOR EACH ROW EXECUTE FUNCTION accounts_refuse_to_rewrite_audit();
CREATE TRIGGER audit_table_stays BEFORE TRUNCATE ON accounts_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION accounts_refuse_to_rewrite_audit();
"""
UNGUARD = """
DROP TRIGGER audit_table_stays ON accounts_auditentry;
DROP TRIGGER audit_rows_stay ON accounts_auditentry;
DROP FUNCTION accounts_refuse_to_rewrite_audit();
"""


def make_groups(apps: Any, schema_editor: Any) -> None:
    groups = apps.get_model("auth", "Group").objects
    for name in ("viewer", "operator", "admin"):
        groups.get_or_create(name=name)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial"), ("auth", "0012_alter_user_first_name_max_length")]
    operations = [
        migrations.RunPython(make_groups, migrations.RunPython.noop),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
