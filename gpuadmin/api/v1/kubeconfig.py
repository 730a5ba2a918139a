"""The kubeconfig of a cluster: try, keep, look, remove. What is in it is never given back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gpuadmin.accounts.access import actor_of
from gpuadmin.accounts.services import AccountError
from gpuadmin.api.permissions import MayManageCluster
from gpuadmin.api.v1.accounts_out import valid
from gpuadmin.api.v1.common import CLUSTER, cluster_of, text
from gpuadmin.fleet import kubeconfigs
from gpuadmin.fleet.models import Kubeconfig
from gpuadmin.kube.capabilities import components, held
from gpuadmin.kube.errors import BadConfig

T = TypeVar("T")


class KubeconfigIn(serializers.Serializer[Any]):
    """``context`` "": the current one. Data only: files, programs and proxies are refused."""

    kubeconfig = serializers.CharField(max_length=65536, trim_whitespace=False)
    context = serializers.CharField(  # type: ignore[assignment]
        max_length=253, default="", allow_blank=True
    )


class OfferIn(serializers.Serializer[Any]):
    """``offer`` as the preview gave it, within 15 minutes and by the same person."""

    offer = serializers.CharField(max_length=200_000)


class HeldOut(serializers.Serializer[Any]):
    """A component of deploy/; ``held`` null: the server did not say."""

    name = serializers.CharField()
    held = serializers.BooleanField(allow_null=True)


class TriedOut(serializers.Serializer[Any]):
    """``problem``: why it can't be used; then there is no ``offer``."""

    server = serializers.CharField()
    context = serializers.CharField()  # type: ignore[assignment]
    version = text()
    account = text()
    problem = text()
    components = HeldOut(many=True)
    offer = text()


class KubeconfigOut(serializers.ModelSerializer[Kubeconfig]):
    """What was given, without what is sealed."""

    given_by = serializers.CharField(source="given_by.username")

    class Meta:
        model = Kubeconfig
        fields = ["server", "context", "user", "given_by", "given_at"]


class OneKubeconfig(APIView):
    """The kubeconfig that was given in the browser or here."""

    permission_classes = (MayManageCluster,)

    @extend_schema(parameters=[CLUSTER], responses=KubeconfigOut)
    def get(self, request: Request) -> Response:
        given = kubeconfigs.given_for(cluster_of(request))
        if given is None:
            raise Http404
        return Response(KubeconfigOut(given).data)

    @extend_schema(parameters=[CLUSTER], request=OfferIn, responses=KubeconfigOut)
    def put(self, request: Request) -> Response:
        """Keeps what was tried; every process takes it up by itself."""
        offer = valid(OfferIn, request)["offer"]
        row = _told(
            "offer", lambda: kubeconfigs.keep(actor_of(request), cluster_of(request), offer)
        )
        return Response(KubeconfigOut(row).data)

    @extend_schema(parameters=[CLUSTER], responses={204: None})
    def delete(self, request: Request) -> Response:
        """Forgets it."""
        if not kubeconfigs.remove(actor_of(request), cluster_of(request)):
            raise Http404
        return Response(status=204)


class PreviewKubeconfig(APIView):
    """What a kubeconfig reaches, and as whom; nothing is kept."""

    permission_classes = (MayManageCluster,)

    @extend_schema(parameters=[CLUSTER], request=KubeconfigIn, responses=TriedOut)
    def post(self, request: Request) -> Response:
        sent, cluster = valid(KubeconfigIn, request), cluster_of(request)
        tried = _told(
            "kubeconfig",
            lambda: kubeconfigs.try_out(
                actor_of(request), cluster, sent["kubeconfig"], sent["context"]
            ),
        )
        problem = tried.identity.error or None
        wanted = components(settings.NAMESPACE, settings.PLUGIN_NAMESPACE)
        answers = [] if problem else held(tried.client, wanted)
        body = {
            "server": tried.config.server,
            "context": tried.config.context,
            "version": tried.identity.version,
            "account": tried.identity.name,
            "problem": problem,
            "components": [{"name": one.component.name, "held": one.held} for one in answers],
            "offer": None if problem else tried.offer,
        }
        return Response(TriedOut(body).data)


def _told(field: str, act: Callable[[], T]) -> T:
    """What is wrong with a kubeconfig is the sender's to mend, not the cluster's fault: 422."""
    try:
        return act()
    except BadConfig as error:
        raise AccountError(error.sentence, field) from error
