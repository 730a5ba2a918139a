"""How operations look, and what is sent to make them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from gpuadmin.api.v1.common import number, time
from gpuadmin.operations.models import Operation, State, Step, Target
from gpuadmin.operations.queries import undoable_targets, waits_for


class ChangeIn(serializers.Serializer[Any]):
    """A change; the schema has the parameters of each kind (gpuadmin/api/schema.py)."""

    kind = serializers.CharField()
    parameters = serializers.DictField()


class ConfirmIn(serializers.Serializer[Any]):
    """``fingerprint`` is the preview's; ``confirm`` its plan's phrase, where pods are ended."""

    fingerprint = serializers.CharField()
    reason = serializers.CharField(allow_blank=True, trim_whitespace=False)
    confirm = serializers.CharField(default="", allow_blank=True, trim_whitespace=False)
    undo_after_seconds = serializers.IntegerField(
        default=None,
        allow_null=True,
        help_text="After so long, 60 to 7776000, it is put back by itself; null: never.",
    )


class CreateIn(ChangeIn, ConfirmIn):
    """A previewed change, confirmed."""


class TargetPlanOut(serializers.Serializer[Any]):
    kind = serializers.CharField()
    uid = serializers.CharField()
    name = serializers.CharField()
    before = serializers.JSONField()
    after = serializers.JSONField()
    already = serializers.BooleanField()
    message = serializers.CharField()


class PlannedPodOut(serializers.Serializer[Any]):
    uid = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    node = serializers.CharField()
    owner = serializers.CharField()
    phase = serializers.CharField()
    gpu = serializers.DictField(child=serializers.IntegerField())
    ours = serializers.BooleanField()


class TouchedPodOut(PlannedPodOut):
    effect = serializers.CharField()
    dies = serializers.BooleanField()


class CapacityOut(serializers.Serializer[Any]):
    resource = serializers.CharField()
    free_now_before = number()
    free_now_after = number()


class PlanConfirmOut(serializers.Serializer[Any]):
    needed = serializers.BooleanField()
    phrase = serializers.CharField()


class PlanOut(serializers.Serializer[Any]):
    """The change as it would be on a fresh snapshot."""

    title = serializers.CharField()
    targets = TargetPlanOut(many=True)
    pods_touched = TouchedPodOut(many=True)
    gpu_workloads_lacking_toleration = PlannedPodOut(many=True)
    capacity = CapacityOut(many=True)
    warnings = serializers.ListField(child=serializers.CharField())
    blockers = serializers.ListField(child=serializers.CharField())
    missing = serializers.ListField(child=serializers.CharField())
    kubectl = serializers.ListField(child=serializers.CharField())
    confirm = PlanConfirmOut()


class PreviewOut(serializers.Serializer[Any]):
    """A plan, and the fingerprint with which it is confirmed."""

    kind = serializers.CharField()
    parameters = serializers.DictField()
    fingerprint = serializers.CharField()
    plan = PlanOut()


class StepOut(serializers.ModelSerializer[Step]):
    log = serializers.ListField(child=serializers.DictField(child=serializers.CharField()))
    started_at = time()
    finished_at = time()

    class Meta:
        model = Step
        fields = ["name", "title", "state", "started_at", "finished_at", "log"]


class TargetOut(serializers.ModelSerializer[Target]):
    """One object: what was read before the write, what was there after it, and the steps."""

    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)
    leaving = serializers.ListField(child=serializers.CharField())
    reversed_at = time()
    steps = StepOut(many=True)

    class Meta:
        model = Target
        fields = [
            "object_kind",
            "object_uid",
            "object_name",
            "state",
            "message",
            "before",
            "after",
            "wrote",
            "reversed_at",
            "leaving",
            "steps",
        ]


class OperationOut(serializers.ModelSerializer[Operation]):
    """A row of the list. ``created_via`` is session or token:<name>."""

    title = serializers.CharField()
    created_by = serializers.CharField(source="created_by.username")
    started_at = time()
    finished_at = time()
    undo_of = serializers.UUIDField(source="undo_of_id", allow_null=True)
    undos = serializers.PrimaryKeyRelatedField[Operation](many=True, read_only=True)
    state = serializers.ChoiceField(State.choices)
    undo_at = time()

    class Meta:
        model = Operation
        fields = [
            "id",
            "kind",
            "title",
            "state",
            "message",
            "reason",
            "created_by",
            "created_via",
            "created_at",
            "started_at",
            "finished_at",
            "expires_at",
            "undo_at",
            "undo_problem",
            "undo_of",
            "undos",
        ]


class OperationDetail(OperationOut):
    """One operation with its plan, targets and steps."""

    parameters = serializers.DictField()
    plan = PlanOut()
    targets = TargetOut(many=True)
    waits_for = serializers.SerializerMethodField()
    can_undo = serializers.SerializerMethodField()

    class Meta(OperationOut.Meta):
        fields = [
            *OperationOut.Meta.fields,
            "parameters",
            "plan",
            "targets",
            "waits_for",
            "can_undo",
        ]

    def get_waits_for(self, operation: Operation) -> str | None:
        rival = waits_for(operation)
        return str(rival.pk) if rival else None

    def get_can_undo(self, operation: Operation) -> bool:
        return bool(undoable_targets(operation))
