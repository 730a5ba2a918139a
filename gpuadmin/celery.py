"""The Celery application: `celery -A gpuadmin worker`."""

import os

from celery import Celery
from celery.signals import beat_init, worker_init

from gpuadmin import env

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gpuadmin.settings")

app = Celery("gpuadmin")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
@beat_init.connect
def refuse_bad_settings(**kwargs: object) -> None:
    """A worker or beat with a bad environment ends at once, with the reasons."""
    env.refuse_to_serve()
