"""Addresses: pages, REST, and the three that machines ask."""

from django.urls import include, path

from gpuadmin import health

urlpatterns = [
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("healthz", health.healthz, name="healthz"),
    path("api/v1/", include("gpuadmin.api.urls")),
    path("", include("gpuadmin.web.urls")),
]
