"""Pods that ask for or hold an accelerator. All others are read live when a preview needs them."""

from __future__ import annotations

from django.db import models

from gpuadmin.fleet.models import Cluster, Node


class Pod(models.Model):
    """A pod by its uid. Bound and finished times come from the API's own timestamps."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="pods")
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    node_name = models.CharField(max_length=253, blank=True, db_index=True)
    phase = models.CharField(max_length=20)
    reason = models.CharField(max_length=120, blank=True)  # status.reason, or why a container waits
    message = models.TextField(blank=True)
    owner_kind = models.CharField(max_length=63, blank=True)
    owner_name = models.CharField(max_length=253, blank=True)
    scheduler_name = models.CharField(max_length=253, blank=True)
    requests = models.JSONField(default=dict)  # resource name -> count, by the scheduler's formula
    tolerations = models.JSONField(default=list)
    created_at = models.DateTimeField(null=True)
    bound_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    deleting_at = models.DateTimeField(null=True)
    gone_at = models.DateTimeField(null=True)
    observed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="one_pod_per_uid")]
        indexes = [models.Index(fields=["cluster", "namespace", "name"])]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PodDevice(models.Model):
    """One device that one container holds, as PodResources said in the node's last report (C30)."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="pod_devices")
    namespace = models.CharField(max_length=253)
    pod_name = models.CharField(max_length=253)
    container = models.CharField(max_length=253)
    resource = models.CharField(max_length=317)
    device_id = models.TextField()
    gpu_uuid = models.CharField(max_length=80, blank=True)
    mig_uuid = models.CharField(max_length=80, blank=True)
    slot = models.PositiveIntegerField(null=True)
    recognised = models.BooleanField(default=True)

    class Meta:
        ordering = ["namespace", "pod_name", "device_id"]

    def __str__(self) -> str:
        return self.device_id
