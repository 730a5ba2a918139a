"""Operations as rows: the truth of every change is here; the broker only nudges."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from gpuadmin.fleet.models import Cluster


class State(models.TextChoices):
    PLANNED = "planned"
    QUEUED = "queued"
    RUNNING = "running"
    VERIFYING = "verifying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STUCK = "stuck"
    CANCELLED = "cancelled"


FINAL_STATES = (State.SUCCEEDED, State.FAILED, State.STUCK, State.CANCELLED)


class Operation(models.Model):
    """One confirmed change to one or more targets.

    ``fence`` grows with each claim; a worker whose fence is not the row's writes nothing more.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="operations")
    kind = models.CharField(max_length=40)
    parameters = models.JSONField()
    plan = models.JSONField()
    fingerprint = models.CharField(max_length=64)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    message = models.TextField(blank=True)
    reason = models.TextField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_via = models.CharField(max_length=80)
    idempotency_key = models.CharField(max_length=120, null=True)  # noqa: DJ001 - null: none given
    undo_of = models.OneToOneField(
        "self", null=True, on_delete=models.PROTECT, related_name="undone_by"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()  # the time limit of the whole
    lease_until = models.DateTimeField(null=True)
    worker = models.CharField(max_length=120, blank=True)
    fence = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["state", "lease_until"])]
        constraints = [
            models.UniqueConstraint(
                fields=["created_by", "idempotency_key"], name="one_operation_per_key"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class Target(models.Model):
    """One object that the operation changes, with what was there before and after."""

    operation = models.ForeignKey(Operation, on_delete=models.CASCADE, related_name="targets")
    position = models.PositiveIntegerField()
    object_kind = models.CharField(max_length=40)
    object_uid = models.CharField(max_length=64)
    object_name = models.CharField(max_length=253)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    message = models.TextField(blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    wrote = models.BooleanField(default=False)

    class Meta:
        ordering = ["position"]

    def __str__(self) -> str:
        return self.object_name


class Step(models.Model):
    """One step of one target: check, act, check. ``log`` is a list of {at, text}."""

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="steps")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=40)
    title = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    log = models.JSONField(default=list)

    class Meta:
        ordering = ["position"]

    def __str__(self) -> str:
        return self.title


class Lock(models.Model):
    """An object that an operation holds; two operations never hold the same one."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    object_key = models.CharField(max_length=300)  # "node/<uid>"
    operation = models.ForeignKey(Operation, on_delete=models.CASCADE, related_name="locks")
    taken_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "object_key"], name="one_holder")]

    def __str__(self) -> str:
        return self.object_key
