from django.apps import AppConfig


class CollectConfig(AppConfig):
    name = "gpuadmin.collect"
    label = "collect"
    default_auto_field = "django.db.models.BigAutoField"
