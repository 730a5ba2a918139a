"""What was. Raw readings lie in daily partitions of ``ledger_reading`` (see services.py): a table
without a Django model, since it is written by COPY and read by SQL alone.
"""

from __future__ import annotations

from django.db import models

from gpuadmin.fleet.models import Node


class XidEvent(models.Model):
    """One XID, once: (agent instance, sequence) tells a repeat from a new one.

    ``code`` is None for a gap: a window in which nobody listened for XIDs on this node.
    """

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="xids")
    at = models.DateTimeField()
    gpu_uuid = models.CharField(max_length=80, blank=True)
    code = models.PositiveIntegerField(null=True)
    agent_instance = models.CharField(max_length=64)
    sequence = models.BigIntegerField()

    class Meta:
        ordering = ["-at"]
        constraints = [
            models.UniqueConstraint(
                fields=["node", "agent_instance", "sequence"], name="one_xid_per_sequence"
            )
        ]

    def __str__(self) -> str:
        return f"XID {self.code}" if self.code is not None else "not listening"
