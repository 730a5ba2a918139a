"""The web process: `gunicorn gpuadmin.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

from gpuadmin import env

env.refuse_to_serve()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gpuadmin.settings")
application = get_wsgi_application()
