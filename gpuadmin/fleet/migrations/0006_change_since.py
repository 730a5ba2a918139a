from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0005_steady_reports"),
    ]

    operations = [
        migrations.AddField(
            model_name="agentstate",
            name="change_since",
            field=models.DateTimeField(null=True),
        ),
    ]
