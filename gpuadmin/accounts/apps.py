from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "gpuadmin.accounts"
    label = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from gpuadmin.accounts import signins  # noqa: F401, PLC0415  listens once apps are loaded
