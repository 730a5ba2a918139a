"""System checks: what is wrong with the environment, one sentence each."""

from collections.abc import Sequence

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, register

from gpuadmin import env


@register
def settings_are_sound(
    app_configs: Sequence[AppConfig] | None, **kwargs: object
) -> list[CheckMessage]:
    """Reports bad values and misspelt names of GPUADMIN_ variables."""
    return [Error(sentence, id="gpuadmin.E001") for sentence in env.problems()]
