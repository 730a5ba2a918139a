"""Everything under /api/v1 needs a sign-in and a role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from gpuadmin.accounts.access import actor_of, require
from gpuadmin.accounts.roles import Permission

if TYPE_CHECKING:  # views import their permission classes from the settings
    from rest_framework.views import APIView


class MayView(BasePermission):
    """Not signed in: 401. Signed in without a role: 403 and an audit row."""

    permission = Permission.VIEW

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return False
        require(actor_of(request), self.permission)
        return True


class MayManageUsers(MayView):
    """An administrator, or a token of one that is not capped."""

    permission = Permission.USERS


class MayManageCluster(MayView):
    """The same, for how the cluster is reached."""

    permission = Permission.CLUSTER
