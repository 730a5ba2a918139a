"""`manage.py gpuadmin_user`: makes users and tokens. A token is printed once and never again."""

from __future__ import annotations

import secrets
import sys
from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, ProgrammingError
from psycopg.errors import UndefinedTable

from gpuadmin.accounts import services, tokens
from gpuadmin.accounts.access import role_of
from gpuadmin.accounts.audit import COMMAND
from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Role

ROLES = [role.label for role in Role if role is not Role.NONE]
NO_TABLES = "The database is empty: run “manage.py migrate” first."


class Command(BaseCommand):
    """Users sign in with a password; programs send a token. Both have a role."""

    help = "Create, list, disable and enable users; give them passwords, roles and API tokens."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        create = actions.add_parser("create", help="a user; prints the password when it makes one")
        create.add_argument("name")
        create.add_argument("--role", choices=ROLES, required=True)
        _add_password(create)
        password = actions.add_parser("set-password", help="a new one; ends the user's sessions")
        password.add_argument("name")
        _add_password(password)
        token = actions.add_parser("token", help="an API token, printed once")
        token.add_argument("name")
        token.add_argument("--name", dest="token_name", required=True, help="what it is for")
        token.add_argument("--role-cap", choices=ROLES, help="the most that it may do")
        life = token.add_mutually_exclusive_group()
        life.add_argument("--days", type=_days, default=tokens.DEFAULT_DAYS)
        life.add_argument("--no-expiry", action="store_true")
        revoke = actions.add_parser("revoke", help="end one token")
        revoke.add_argument("name")
        revoke.add_argument("--name", dest="token_name", required=True)
        role = actions.add_parser("set-role", help="replace a user's role")
        role.add_argument("name")
        role.add_argument("role", choices=[*ROLES, "none"])
        disable = actions.add_parser("disable", help="end a user's sessions and tokens")
        disable.add_argument("name")
        enable = actions.add_parser("enable", help="let a disabled user sign in again")
        enable.add_argument("name")
        out = actions.add_parser("sign-out", help="end a user's sessions everywhere")
        out.add_argument("name")
        out.add_argument("--tokens", action="store_true", help="and every API token")
        actions.add_parser("list", help="users with role, state and tokens")

    def handle(self, *args: Any, **options: Any) -> None:
        action = {
            "create": self._create,
            "set-password": self._set_password,
            "token": self._token,
            "revoke": self._revoke,
            "set-role": self._set_role,
            "disable": self._disable,
            "enable": self._enable,
            "sign-out": self._sign_out,
            "list": self._list,
        }[options["action"]]
        try:
            action(options)
        except services.AccountError as error:
            raise CommandError(str(error)) from error
        except OperationalError as error:
            why = str(error).strip().partition("\n")[0]
            raise CommandError(f"The database can't be used: {why}") from error
        except ProgrammingError as error:
            if isinstance(error.__cause__, UndefinedTable):
                raise CommandError(
                    "The database is empty: run “manage.py migrate” first."
                ) from error
            raise

    def _create(self, options: dict[str, Any]) -> None:
        password = _password(options)
        services.create_user(COMMAND, options["name"], Role.named(options["role"]), password)
        self._print_generated(options, password)

    def _set_password(self, options: dict[str, Any]) -> None:
        password = _password(options)
        services.set_password(COMMAND, options["name"], password)
        self._print_generated(options, password)

    def _print_generated(self, options: dict[str, Any], password: str) -> None:
        if options["generate"]:
            self.stdout.write(password)

    def _token(self, options: dict[str, Any]) -> None:
        cap = Role.named(options["role_cap"]) if options["role_cap"] else None
        days = None if options["no_expiry"] else options["days"]
        self.stdout.write(
            tokens.create_token(COMMAND, options["name"], options["token_name"], cap=cap, days=days)
        )

    def _revoke(self, options: dict[str, Any]) -> None:
        tokens.revoke_token(COMMAND, options["name"], options["token_name"])

    def _set_role(self, options: dict[str, Any]) -> None:
        role = Role.NONE if options["role"] == "none" else Role.named(options["role"])
        services.set_role(COMMAND, options["name"], role)

    def _disable(self, options: dict[str, Any]) -> None:
        services.disable(COMMAND, options["name"])

    def _enable(self, options: dict[str, Any]) -> None:
        services.enable(COMMAND, options["name"])

    def _sign_out(self, options: dict[str, Any]) -> None:
        services.sign_out_everywhere(COMMAND, options["name"], tokens=options["tokens"])

    def _list(self, options: dict[str, Any]) -> None:
        for user in User.objects.order_by("username").prefetch_related("auth_token_set"):
            role = role_of(user).label or "no role"
            state = "" if user.is_active else ", disabled"
            self.stdout.write(f"{user.get_username()}: {role}{state}")
            for token in user.auth_token_set.all():
                cap = f", at most {token.role_cap}" if token.role_cap else ""
                until = f"until {token.expiry:%Y-%m-%d}" if token.expiry else "does not expire"
                used = f"{token.last_used:%Y-%m-%d %H:%M}" if token.last_used else "never"
                self.stdout.write(f"  token {token.name}{cap}, {until}, last used {used}")


def _add_password(parser: CommandParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--password-stdin", action="store_true", help="read one line")
    source.add_argument("--generate", action="store_true", help="make one and print it")


def _password(options: dict[str, Any]) -> str:
    """Made here, or one line of standard input: an argument would stand in the process list."""
    if options["generate"]:
        return secrets.token_urlsafe(18)
    return sys.stdin.readline().rstrip("\r\n")


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= tokens.MAX_DAYS):
        raise ArgumentTypeError(f"must be a whole number from 1 to {tokens.MAX_DAYS}")
    return int(text)
