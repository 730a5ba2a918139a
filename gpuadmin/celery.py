"""The Celery application: `celery -A gpuadmin worker`."""

import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, task_received, worker_init, worker_ready

from gpuadmin import ears, env

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gpuadmin.settings")

app = Celery("gpuadmin")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
@beat_init.connect
def refuse_bad_settings(**kwargs: object) -> None:
    """A worker or beat with a bad environment ends at once, with the reasons."""
    env.refuse_to_serve()


@worker_ready.connect
def keep_hearing(sender: Any, **kwargs: object) -> None:
    """A worker that takes nothing more of its queues ends (gpuadmin.ears)."""
    from celery.worker import state  # noqa: PLC0415  the web needs none of it

    queue = ears.queue_at(env.REDIS_URL.read())
    names = list(app.amqp.queues.consume_from)
    watched = ears.Ears(
        waiting=lambda: sum(int(queue.llen(name)) for name in names),
        busy=lambda: len(state.reserved_requests) >= sender.controller.concurrency,
    )
    task_received.connect(watched.heard, weak=False)
    ears.watch(watched)
