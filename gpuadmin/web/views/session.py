"""Signing in and out. A locked name is told so in one sentence; audit rows are accounts'."""

from __future__ import annotations

from typing import Any

from axes.helpers import get_cool_off
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from gpuadmin.web.pictures.text import age


class SignIn(LoginView):
    """Name and password; whoever is signed in already goes on to where they wanted to be."""

    template_name = "sign_in.html"
    redirect_authenticated_user = True
    http_method_names = ["get", "head", "post"]


class SignOut(LogoutView):
    """By POST only, so that no link can sign anybody out."""


def locked(request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
    """What axes shows after too many failures (AXES_LOCKOUT_CALLABLE)."""
    wait = get_cool_off(request)
    context = {"locked": age(wait.total_seconds()) if wait else "ever"}
    return render(request, "sign_in.html", context, status=429)
