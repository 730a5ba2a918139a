"""The product's settings for its processes in these tests.

Pages name static files as they are written: nobody has collected them here. The sweep of operations
and the question for our rights come more often, so that a test does not wait for them.
"""

from datetime import timedelta

from gpuadmin import settings as product
from gpuadmin.settings import *  # noqa: F403

SWEEP_SECONDS = 5
_SOONER = ("take up operations that lost their worker", "ask what our account may do")
# A table of its own: the product's is shared with every other test of this process.
CELERY_BEAT_SCHEDULE = product.CELERY_BEAT_SCHEDULE | {
    name: {
        **product.CELERY_BEAT_SCHEDULE[name],
        "schedule": timedelta(seconds=SWEEP_SECONDS),
        "options": {"expires": SWEEP_SECONDS},
    }
    for name in _SOONER
}

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
