from django.db import migrations

CREATE = """
CREATE TABLE ledger_reading (
    at timestamptz NOT NULL,
    gpu_id bigint NOT NULL,
    memory_used_bytes bigint,
    power_watts real,
    utilization_percent smallint,
    temperature_celsius smallint
) PARTITION BY RANGE (at);
CREATE INDEX ledger_reading_gpu_at ON ledger_reading (gpu_id, at);
"""


class Migration(migrations.Migration):
    dependencies = [("ledger", "0001_initial")]
    operations = [migrations.RunSQL(CREATE, "DROP TABLE ledger_reading")]
