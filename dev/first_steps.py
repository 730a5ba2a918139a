"""Brings the demo's database to the code's state: migrations, the user admin, its API token.

python -m dev.first_steps FOLDER      FOLDER holds `password`, and gets `token`
"""

import sys
from pathlib import Path

import django
from django.core.management import call_command

USER = "admin"
TOKEN_NAME = "demo"


def main(folder: Path) -> None:
    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    ensure_user((folder / "password").read_text())
    _ensure_token(folder / "token")


def ensure_user(password: str) -> None:
    """What `ready:` prints signs in, in a kept database too, whatever was tried on the user."""
    from gpuadmin.accounts import services  # noqa: PLC0415  needs django.setup()
    from gpuadmin.accounts.audit import COMMAND  # noqa: PLC0415
    from gpuadmin.accounts.models import User  # noqa: PLC0415
    from gpuadmin.accounts.roles import Role  # noqa: PLC0415

    user = User.objects.filter(username=USER).first()
    if user is None:
        services.create_user(COMMAND, USER, Role.ADMIN, password)
    elif not user.check_password(password):
        services.set_password(COMMAND, USER, password)
    if user is not None and not user.is_active:
        services.enable(COMMAND, USER)


def _ensure_token(file: Path) -> None:
    """Keeps the token of the file where it is still good, else replaces it."""
    from knox.crypto import hash_token  # noqa: PLC0415  needs django.setup()

    from gpuadmin.accounts import tokens  # noqa: PLC0415
    from gpuadmin.accounts.audit import COMMAND  # noqa: PLC0415
    from gpuadmin.accounts.models import AccessToken  # noqa: PLC0415

    rows = AccessToken.objects.filter(user__username=USER, name=TOKEN_NAME)
    if file.exists() and rows.filter(digest=hash_token(file.read_text())).exists():
        return
    if rows.exists():
        tokens.revoke_token(COMMAND, USER, TOKEN_NAME)
    token = tokens.create_token(COMMAND, USER, TOKEN_NAME, cap=None, days=None)
    file.touch(mode=0o600)
    file.write_text(token)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
