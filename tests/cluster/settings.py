"""The product's settings for its processes in these tests.

Pages name static files as they are written: nobody has collected them here.
"""

from gpuadmin.settings import *  # noqa: F403

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
