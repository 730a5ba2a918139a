"""My account: one's own password, API tokens and sessions."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import logout, update_session_auth_hash
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpuadmin.accounts import queries, services
from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Permission, Role
from gpuadmin.accounts.services import AccountError
from gpuadmin.accounts.tokens import create_token, revoke_token
from gpuadmin.web.forms.accounts import FOR_EVER, LIVES, TokenForm, typed_twice
from gpuadmin.web.page import Here, Page, in_sheet, page
from gpuadmin.web.pictures import accounts as pictures

DONE = {
    "password": "Your password is changed; your other sessions have ended.",
    "revoked": "The token is revoked: whoever sends it is answered 401.",
    "session": "That session has ended.",
}


@require_safe
@page()
def account(request: HttpRequest, here: Here) -> Page:
    return _account_page(request, here, done=DONE.get(request.GET.get("done", ""), ""))


@sensitive_post_parameters("old", "password", "again")
@require_POST
@page(Permission.ACCOUNT, live_reads=True)
def password(request: HttpRequest, here: Here) -> Page | HttpResponse:
    try:
        services.change_password(here.actor, request.POST.get("old", ""), typed_twice(request.POST))
    except AccountError as error:
        return _account_page(request, here, errors={error.field: str(error)}, status=422)
    me = _me(here)
    me.refresh_from_db()
    update_session_auth_hash(request, me)  # a new session id; all the others have ended
    return _see("password")


@require_http_methods(["GET", "HEAD", "POST"])
@page(Permission.ACCOUNT, live_reads=True)
def new_token(request: HttpRequest, here: Here) -> Page:
    """POST answers with the token itself: this is the only time that it is told."""
    form, errors, made = TokenForm(), {}, ""
    if request.method == "POST":
        form = TokenForm.read(request.POST)
        try:
            name = here.actor.name
            made = create_token(here.actor, name, form.name, cap=form.role_cap, days=form.life_days)
        except AccountError as error:
            errors = {error.field or "name": str(error)}
    caps = [role.label for role in Role if role is not Role.NONE and role < here.actor.role]
    context: dict[str, Any] = {
        "inside": "account/_token.html",
        "in_sheet": in_sheet(request),
        "form": form,
        "errors": errors,
        "made": made,
        "caps": caps,
        "lives": {**LIVES, FOR_EVER: "until it is revoked"}.items(),
    }
    shell = "account/_token.html" if in_sheet(request) else "account/page.html"
    return Page(shell, context, 422 if errors else 200)


@require_POST
@page(Permission.ACCOUNT, live_reads=True)
def revoke(request: HttpRequest, here: Here) -> Page | HttpResponse:
    try:
        revoke_token(here.actor, here.actor.name, request.POST.get("token", ""))
    except AccountError as error:
        return _account_page(request, here, errors={"": str(error)}, status=422)
    return _see("revoked")


@require_POST
@page(Permission.ACCOUNT, live_reads=True)
def end(request: HttpRequest, here: Here) -> Page | HttpResponse:
    """One session by its public id, or all of them, this one too."""
    try:
        if request.POST.get("all") == "1":
            with_tokens = request.POST.get("tokens") == "1"
            services.sign_out_everywhere(here.actor, here.actor.name, tokens=with_tokens)
            logout(request)
            return HttpResponseRedirect(reverse("sign-in"), status=303)
        services.end_session(here.actor, request.POST.get("session", ""))
    except AccountError as error:
        return _account_page(request, here, errors={"": str(error)}, status=422)
    return _see("session")


def _me(here: Here) -> User:
    if here.actor.user is None:
        raise TypeError("nobody is signed in")
    return here.actor.user


def _see(done: str) -> HttpResponse:
    return HttpResponseRedirect(f"{reverse('account')}?done={done}", status=303)


def _account_page(
    request: HttpRequest,
    here: Here,
    *,
    done: str = "",
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Page:
    me, key = _me(here), request.session.session_key
    return Page(
        "account.html",
        {
            "done": done,
            "errors": errors or {},
            "problem": (errors or {}).get("", ""),
            "tokens": pictures.token_lines(queries.tokens_of(me), here.now),
            "sessions": pictures.session_lines(queries.sessions_of(me, here.now), key),
        },
        status,
    )
