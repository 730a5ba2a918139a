"""People and programs that sign in, and the record of what they did."""

from __future__ import annotations

import hashlib

from django.contrib.auth.models import AbstractUser
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from knox.models import AbstractAuthToken


class User(AbstractUser):
    """A person or a program. Rights come from the groups viewer, operator and admin."""


class AccessToken(AbstractAuthToken):
    """An API token: only its digest is kept. ``role_cap`` can only lower its owner's role."""

    name = models.CharField(max_length=60)
    role_cap = models.CharField(max_length=10, blank=True)
    last_used = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created"]
        constraints = [
            models.UniqueConstraint(fields=["user", "name"], name="one_token_per_name"),
        ]

    def __str__(self) -> str:
        return self.name


class BrowserSession(AbstractBaseSession):
    """A browser that is signed in, or that has not signed in yet (``user`` None).

    The columns beside Django's repeat what its data says, so that sessions can be listed and ended
    by user (gpuadmin.accounts.sessions).
    """

    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="sessions")
    signed_in_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)
    address = models.GenericIPAddressField(null=True)
    browser = models.CharField(max_length=200, blank=True)

    class Meta(AbstractBaseSession.Meta):
        ordering = ["-seen_at"]

    def __str__(self) -> str:
        return self.public_id

    @property
    def public_id(self) -> str:
        """Names the session on pages; the key itself would let anybody in."""
        return hashlib.sha256(self.session_key.encode()).hexdigest()[:16]


class AuditEntry(models.Model):
    """One write or one refusal. Append-only: a trigger in the database refuses the rest."""

    class Outcome(models.TextChoices):
        DONE = "done"
        REFUSED = "refused"
        FAILED = "failed"

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    actor_name = models.CharField(max_length=150)
    via = models.CharField(max_length=80, help_text="session, token:<name>, command or system")
    role = models.CharField(max_length=10, blank=True)
    action = models.CharField(max_length=60)
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    object_kind = models.CharField(max_length=40, blank=True)
    object_uid = models.CharField(max_length=64, blank=True)
    object_name = models.CharField(max_length=253, blank=True)
    reason = models.TextField(blank=True)
    detail = models.JSONField(default=dict)
    address = models.GenericIPAddressField(null=True)

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.actor_name} {self.action} {self.object_name}: {self.outcome}"
