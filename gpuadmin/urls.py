"""Addresses: pages, REST, and the three that machines ask."""

from django.urls import include, path, re_path

from gpuadmin import health
from gpuadmin.api.v1.fallback import Nowhere

handler500 = "gpuadmin.away.broken"
urlpatterns = [
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("healthz", health.healthz, name="healthz"),
    path("api/v1/", include("gpuadmin.api.urls")),
    re_path("^api(/|$)", Nowhere.as_view()),
    path("", include("gpuadmin.web.urls")),
]
