"""Users: who there is, and what an administrator does to one. Each change is a form of its own."""

from __future__ import annotations

from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from gpuadmin.accounts import queries, services, tokens
from gpuadmin.accounts.access import role_of
from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Permission, Role
from gpuadmin.accounts.services import AccountError
from gpuadmin.web.forms.accounts import role_named
from gpuadmin.web.page import Here, Page, in_sheet, page
from gpuadmin.web.pictures import accounts as pictures

DONE = {
    "created": "The user can sign in now.",
    "role": "The role holds from the next request on.",
    "password": "The password is set, and every session of the user has ended.",
    "disabled": "The user can't sign in any more; sessions have ended and tokens are revoked.",
    "enabled": "The user can sign in again. API tokens have to be made anew.",
    "signed-out": "Every session of the user has ended.",
    "revoked": "The token is revoked: whoever sends it is answered 401.",
}


@require_safe
@page(Permission.USERS)
def users(request: HttpRequest, here: Here) -> Page:
    lines = [pictures.user_line(user, here.actor.user) for user in queries.users(here.now)]
    return Page("users.html", {"lines": lines})


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
@page(Permission.USERS, live_reads=True)
def new_user(request: HttpRequest, here: Here) -> Page | HttpResponse:
    name, role = request.POST.get("name", "").strip(), request.POST.get("role", "viewer")
    errors = {}
    if request.method == "POST":
        try:
            services.create_user(
                here.actor, name, role_named(role), request.POST.get("password", "")
            )
            return _see(name, "created")
        except AccountError as error:
            errors = {error.field or "name": str(error)}
    known = [choice.value for choice in pictures.role_choices(Role.NONE)]
    chosen = Role.NONE if role not in known or role == "none" else Role.named(role)
    return _sheet(
        request,
        "new",
        {"name": name, "choices": pictures.role_choices(chosen), "errors": errors},
        422 if errors else 200,
    )


@require_safe
@page(Permission.USERS)
def user(request: HttpRequest, here: Here, name: str) -> Page:
    return _user_page(request, here, name, done=DONE.get(request.GET.get("done", ""), ""))


@require_POST
@page(Permission.USERS, live_reads=True)
def role(request: HttpRequest, here: Here, name: str) -> Page | HttpResponse:
    def change() -> None:
        services.set_role(here.actor, name, role_named(request.POST.get("role", "")))

    return _change(request, here, name, "role", change)


@sensitive_post_parameters("password")
@require_POST
@page(Permission.USERS, live_reads=True)
def password(request: HttpRequest, here: Here, name: str) -> Page | HttpResponse:
    def change() -> None:
        services.set_password(here.actor, name, request.POST.get("password", ""))

    return _change(request, here, name, "password", change)


@require_POST
@page(Permission.USERS, live_reads=True)
def disable(request: HttpRequest, here: Here, name: str) -> Page | HttpResponse:
    return _change(request, here, name, "disabled", lambda: services.disable(here.actor, name))


@require_POST
@page(Permission.USERS, live_reads=True)
def enable(request: HttpRequest, here: Here, name: str) -> Page | HttpResponse:
    return _change(request, here, name, "enabled", lambda: services.enable(here.actor, name))


@require_POST
@page(Permission.USERS, live_reads=True)
def sign_out(request: HttpRequest, here: Here, name: str) -> Page | HttpResponse:
    with_tokens = request.POST.get("tokens") == "1"

    def change() -> None:
        services.sign_out_everywhere(here.actor, name, tokens=with_tokens)

    return _change(request, here, name, "signed-out", change)


@require_POST
@page(Permission.USERS, live_reads=True)
def revoke(request: HttpRequest, here: Here, name: str) -> Page | HttpResponse:
    def change() -> None:
        tokens.revoke_token(here.actor, name, request.POST.get("token", ""))

    return _change(request, here, name, "revoked", change)


def _change(
    request: HttpRequest, here: Here, name: str, done: str, change: Callable[[], None]
) -> Page | HttpResponse:
    """Makes the change and shows the user again; else the same sheet with the reason."""
    try:
        change()
    except AccountError as error:
        return _user_page(request, here, name, errors={error.field: str(error)}, status=422)
    return _see(name, done)


def _see(name: str, done: str) -> HttpResponse:
    return HttpResponseRedirect(f"{reverse('user', args=[name])}?done={done}", status=303)


def _user_page(
    request: HttpRequest,
    here: Here,
    name: str,
    *,
    done: str = "",
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Page:
    found: User | None = queries.users(here.now).filter(username=name).first()
    if found is None:
        raise Http404
    return _sheet(
        request,
        "user",
        {
            "line": pictures.user_line(found, here.actor.user),
            "choices": pictures.role_choices(role_of(found)),
            "tokens": pictures.token_lines(queries.tokens_of(found), here.now),
            "done": done,
            "errors": errors or {},
            "problem": (errors or {}).get("", ""),
        },
        status,
    )


def _sheet(request: HttpRequest, what: str, context: dict[str, object], status: int) -> Page:
    """The side sheet, or the same as a page of its own where there is no script."""
    shell = f"users/_{what}.html" if in_sheet(request) else "users/page.html"
    inside = {"inside": f"users/_{what}.html", "in_sheet": in_sheet(request)}
    return Page(shell, {**context, **inside}, status)
