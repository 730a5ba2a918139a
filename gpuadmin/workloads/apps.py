from django.apps import AppConfig


class WorkloadsConfig(AppConfig):
    name = "gpuadmin.workloads"
    label = "workloads"
    default_auto_field = "django.db.models.BigAutoField"
