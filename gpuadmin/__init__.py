"""The console: Django project, rules and pages."""

from gpuadmin.celery import app as celery_app

__all__ = ["celery_app"]
