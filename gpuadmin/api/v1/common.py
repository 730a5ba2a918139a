"""What the nouns share: which cluster, and how fields are declared."""

from __future__ import annotations

from typing import Any

from django.utils.decorators import method_decorator
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request

from gpuadmin.api.problems import Missing
from gpuadmin.fleet.models import Cluster
from gpuadmin.fleet.queries import the_cluster
from gpuadmin.fleet.snapshot import one_snapshot

CLUSTER = OpenApiParameter("cluster", str, description="Name of the cluster, where more than one.")
PAGE = OpenApiParameter("page", int, description="From 1.")
PAGE_SIZE = OpenApiParameter("page_size", int, description="At most 500; 100 unless told.")
NAME = OpenApiParameter("name", str, description="Only those whose `name` is exactly this.")
LIST = [CLUSTER, PAGE, PAGE_SIZE]
NAMED_LIST = [*LIST, NAME]
# For REST framework's own views: an answer never shows two moments. It stands around `get` and not
# around the whole request, since the use of a token and refusals are written.
IN_ONE_SNAPSHOT = method_decorator(one_snapshot(), name="get")


def cluster_of(request: Request) -> Cluster:
    """The cluster of ``?cluster=``, or the only one. Raises ``Missing``."""
    name = request.query_params.get("cluster")
    cluster = the_cluster(name)
    if cluster is not None:
        return cluster
    raise (
        missing(f"cluster “{name}”", "clusters")
        if name
        else Missing("No cluster has been read yet: Set-up says what is needed.")
    )


def missing(what: str, listed_at: str) -> Missing:
    """``what`` is not there; the address of the list has those that are."""
    return Missing(f"There is no {what}; GET /api/v1/{listed_at} lists them.")


def number(**more: Any) -> serializers.IntegerField:
    """A count; null where it is unknown."""
    return serializers.IntegerField(allow_null=True, **more)


def time(**more: Any) -> serializers.DateTimeField:
    """A moment by the server's clock; null where there was none."""
    return serializers.DateTimeField(allow_null=True, **more)


def text(**more: Any) -> serializers.CharField:
    return serializers.CharField(allow_null=True, **more)
