"""Secrets at rest: sealed with a key made from GPUADMIN_SECRET_KEY, one for each purpose."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


class Unsealable(Exception):
    """It was changed, is too old, or was sealed with another secret key."""


def seal(text: str, purpose: str) -> str:
    return _box(purpose).encrypt(text.encode()).decode()


def unseal(sealed: str, purpose: str, *, max_age_seconds: int | None = None) -> str:
    """Raises ``Unsealable``."""
    from cryptography.fernet import InvalidToken  # noqa: PLC0415

    try:
        return _box(purpose).decrypt(sealed.encode(), ttl=max_age_seconds).decode()
    except (InvalidToken, ValueError) as error:
        raise Unsealable from error


def _box(purpose: str) -> Fernet:
    """Imported when it is used: few processes ever open anything, and it costs 6 MB."""
    from cryptography.fernet import Fernet  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

    derived = HKDF(hashes.SHA256(), 32, salt=None, info=f"gpuadmin {purpose}".encode())
    return Fernet(base64.urlsafe_b64encode(derived.derive(settings.SECRET_KEY.encode())))
