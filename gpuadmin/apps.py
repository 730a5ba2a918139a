"""The project as an app of its own: it owns the checks of the environment."""

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    name = "gpuadmin"

    def ready(self) -> None:
        from gpuadmin import checks  # noqa: F401, PLC0415  registers itself once apps are loaded
