"""Operations as rows: the truth of every change is here; the broker only nudges."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from gpuadmin.fleet.models import Cluster


class State(models.TextChoices):
    """PLANNED is the state of targets and steps whose operation still waits in the queue."""

    PLANNED = "planned"
    QUEUED = "queued"
    RUNNING = "running"
    VERIFYING = "verifying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STUCK = "stuck"
    CANCELLED = "cancelled"


ACTIVE_STATES = (State.RUNNING, State.VERIFYING)
GOOD_STATES = (State.QUEUED, State.RUNNING, State.VERIFYING, State.SUCCEEDED)
FINAL_STATES = (State.SUCCEEDED, State.FAILED, State.STUCK, State.CANCELLED)


class Preview(models.Model):
    """What a plan was made on, kept for a while so that a moved snapshot can be told apart.

    Keyed by its own content: the same preview twice is one row.
    """

    fingerprint = models.CharField(max_length=64, primary_key=True)
    basis = models.JSONField()
    made_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.fingerprint


class Operation(models.Model):
    """One confirmed change to one or more targets.

    ``fence`` grows with each claim; a worker whose fence is not the row's writes nothing more.
    ``lock_keys`` names every object that it changes, as ``node/<uid>``.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="operations")
    kind = models.CharField(max_length=40)
    parameters = models.JSONField()
    plan = models.JSONField()
    fingerprint = models.CharField(max_length=64)
    lock_keys = ArrayField(models.CharField(max_length=300))
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    message = models.TextField(blank=True)
    reason = models.TextField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_via = models.CharField(max_length=80)
    created_role = models.CharField(max_length=10)
    idempotency_key = models.CharField(max_length=120, null=True)  # noqa: DJ001 - null: none given
    undo_of = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="undos")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()  # in the queue: the latest start; then: the time limit
    lease_until = models.DateTimeField(null=True)
    worker = models.CharField(max_length=300, blank=True)  # celery@<host>/<uuid>
    fence = models.BigIntegerField(default=0)
    undo_at = models.DateTimeField(null=True)  # when it is put back by itself; null: never
    undo_problem = models.TextField(blank=True)  # why that could not be done

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["state", "lease_until"]),
            models.Index(fields=["-created_at"]),
            GinIndex(fields=["lock_keys"], name="operations_by_lock_key"),
            models.Index(
                fields=["undo_at"],
                condition=models.Q(undo_at__isnull=False),
                name="operations_to_put_back",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["created_by", "idempotency_key"], name="one_operation_per_key"
            ),
            models.UniqueConstraint(
                fields=["undo_of"],
                condition=models.Q(state__in=[state.value for state in GOOD_STATES]),
                name="one_good_undo",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"

    @property
    def title(self) -> str:
        return str(self.plan["title"])

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES


class Target(models.Model):
    """One object that the operation changes.

    ``before`` and ``after`` are images {version, value}; ``before`` is stored ahead of the write,
    so that a repeated run knows its own work. ``leaving`` lists pods that the change sends away
    and that are still there, as "namespace/name".
    """

    operation = models.ForeignKey(Operation, on_delete=models.CASCADE, related_name="targets")
    position = models.PositiveIntegerField()
    object_kind = models.CharField(max_length=40)
    object_uid = models.CharField(max_length=64)
    object_name = models.CharField(max_length=253)
    state = models.CharField(max_length=10, choices=State.choices, default=State.PLANNED)
    message = models.TextField(blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    wrote = models.BooleanField(default=False)
    leaving = models.JSONField(default=list)
    reversed_at = models.DateTimeField(null=True)  # when it was first seen changed by others

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["operation", "position"], name="one_target_per_place"),
        ]

    def __str__(self) -> str:
        return self.object_name


class Step(models.Model):
    """One step of one target: check, act, check. ``log`` is a list of {at, text}."""

    class Name(models.TextChoices):
        WRITE = "write"
        VERIFY = "verify"
        LEAVE = "leave"

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="steps")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=40, choices=Name.choices)
    title = models.CharField(max_length=300)  # holds a name of up to 253
    state = models.CharField(max_length=10, choices=State.choices, default=State.PLANNED)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    log = models.JSONField(default=list)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["target", "name"], name="one_step_per_name"),
        ]

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
