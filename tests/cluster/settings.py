"""The product's settings for its processes in these tests.

Pages name static files as they are written: nobody has collected them here. The sweep of operations
and the question for our rights come more often, so that a test does not wait for them.
"""

from datetime import timedelta

from gpuadmin.settings import *  # noqa: F403
from gpuadmin.settings import CELERY_BEAT_SCHEDULE

SWEEP_SECONDS = 5
for name in ("take up operations that lost their worker", "ask what our account may do"):
    CELERY_BEAT_SCHEDULE[name]["schedule"] = timedelta(seconds=SWEEP_SECONDS)

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
