"""Every permission in the cluster that any of our components takes, and what for."""

from __future__ import annotations

from django.conf import settings

from gpuadmin.kube.access import Need
from gpuadmin.kube.capabilities import Component, components


def our_components() -> list[Component]:
    """In the order of the Set-up page. deploy/components grants just these."""
    return components(settings.NAMESPACE, settings.PLUGIN_NAMESPACE)


def needs() -> list[Need]:
    """Those of all components, one component after the other."""
    return [need for component in our_components() for need in component.needs]
