"""What there is now. Two sources, never mixed in one row's columns without saying so:
the Kubernetes API (Node, NodeResource) and the agents (AgentState, Gpu, MigInstance).
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from gpuadmin.accounts.models import User


class Cluster(models.Model):
    """One Kubernetes cluster. Times of reads are by the server's clock; errors are sentences."""

    name = models.CharField(max_length=253, unique=True)
    server = models.CharField(max_length=500, blank=True)
    version = models.CharField(max_length=60, blank=True)
    account = models.CharField(max_length=253, blank=True)
    simulated = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    nodes_observed_at = models.DateTimeField(null=True)
    nodes_error = models.TextField(blank=True)
    pods_observed_at = models.DateTimeField(null=True)
    pods_error = models.TextField(blank=True)
    pods_forbidden = models.BooleanField(default=False)
    components = models.JSONField(default=dict)  # name → held; None: the server did not say
    components_at = models.DateTimeField(null=True)
    poll_began_at = models.DateTimeField(null=True)  # the last cycle, by whichever beat
    leader = models.CharField(max_length=120, blank=True)
    leader_term = models.BigIntegerField(default=0)
    leader_until = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class Kubeconfig(models.Model):
    """The kubeconfig that an administrator gave in the browser. Each new one is a new row.

    ``sealed`` opens with GPUADMIN_SECRET_KEY only; what is beside it may be shown.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE)
    sealed = models.TextField()
    server = models.CharField(max_length=500)
    context = models.CharField(max_length=253)
    user = models.CharField(max_length=253)
    given_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    given_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.context} at {self.server}"


class Heartbeat(models.Model):
    """Proof that a cycle of work was done: one row per cluster and kind (C43)."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    kind = models.CharField(max_length=20)  # watch-nodes, watch-pods, poll
    at = models.DateTimeField()
    ok_at = models.DateTimeField(null=True)
    ok = models.BooleanField()
    message = models.TextField(blank=True)
    expected_seconds = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "kind"], name="one_heartbeat")]

    def __str__(self) -> str:
        return f"{self.kind} at {self.at:%H:%M:%S}"


class Node(models.Model):
    """A node by its uid: a machine that comes back under the same name is a new row (C40)."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    uid = models.CharField(max_length=64)
    name = models.CharField(max_length=253, db_index=True)
    created_at = models.DateTimeField(null=True)
    first_seen = models.DateTimeField(auto_now_add=True)
    observed_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True)
    ready = models.BooleanField(null=True)
    ready_reason = models.TextField(blank=True)
    ready_since = models.DateTimeField(null=True)
    unschedulable = models.BooleanField(default=False)
    labels = models.JSONField(default=dict)
    taints = models.JSONField(default=list)
    conditions = models.JSONField(default=list)
    info = models.JSONField(default=dict)  # status.nodeInfo as it came
    capacity = models.JSONField(default=dict)  # accelerator names only; null: not a number
    allocatable = models.JSONField(default=dict)
    is_gpu_node = models.BooleanField(default=False)
    mig_state_since = models.DateTimeField(null=True)  # mig.config.state reads so since

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "uid"], name="one_node_per_uid"),
            models.UniqueConstraint(
                fields=["cluster", "name"],
                condition=models.Q(gone_at__isnull=True),
                name="one_present_node_per_name",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class NodeResource(models.Model):
    """One accelerator resource name on one node, as `planning.counting.account` counted it.

    ``None`` means unknown, never zero. Units: ``unit`` is card, slice, slot or other.
    """

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="resources")
    name = models.CharField(max_length=317)
    unit = models.CharField(max_length=10)
    physical = models.BigIntegerField(null=True)
    capacity = models.BigIntegerField(null=True)
    allocatable = models.BigIntegerField(null=True)
    requested = models.BigIntegerField(null=True)
    free = models.BigIntegerField(null=True)
    free_now = models.BigIntegerField(null=True)
    over_committed = models.BigIntegerField(null=True)
    unavailable = models.BigIntegerField(null=True)
    note = models.CharField(max_length=40, blank=True)  # planning.counting.Note
    observed_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["node", "name"], name="one_row_per_name")]

    def __str__(self) -> str:
        return self.name


class AgentState(models.Model):
    """The agent of one node: where it is and what came of asking it."""

    class Status(models.TextChoices):
        OK = "ok"
        PAUSED = "paused"
        NVML_ERROR = "nvml_error"  # the agent answers, NVML doesn't
        MISSING = "missing"  # no pod of our DaemonSet on this node
        NOT_RUNNING = "not_running"
        UNREACHABLE = "unreachable"
        REFUSED = "refused"  # wrong token
        BAD_ANSWER = "bad_answer"
        WRONG_NODE = "wrong_node"

    node = models.OneToOneField(Node, on_delete=models.CASCADE, related_name="agent")
    pod_uid = models.CharField(max_length=64, blank=True)
    pod_name = models.CharField(max_length=253, blank=True)
    address = models.GenericIPAddressField(null=True)
    port = models.PositiveIntegerField(null=True)
    status = models.CharField(max_length=12, choices=Status.choices)
    reason = models.TextField(blank=True)
    since = models.DateTimeField()
    asked_at = models.DateTimeField(null=True)
    reported_at = models.DateTimeField(null=True)  # the last good report
    instance = models.CharField(max_length=64, blank=True)
    version = models.CharField(max_length=40, blank=True)
    clock_skew_seconds = models.FloatField(null=True)
    driver_version = models.CharField(max_length=40, blank=True)
    cuda_version = models.CharField(max_length=20, blank=True)
    pods_error = models.TextField(blank=True)
    xid_sequence = models.BigIntegerField(default=0)
    change_since = models.DateTimeField(null=True)  # its node's labels signal a change (C18) since
    # What the last whole store of a report left: see fleet.steady. No digest: the next is whole.
    digest = models.CharField(max_length=32, blank=True)
    processes_digest = models.CharField(max_length=32, blank=True)
    card_ids = ArrayField(models.BigIntegerField(), default=list)
    instance_ids = ArrayField(models.BigIntegerField(), default=list)

    def __str__(self) -> str:
        return f"agent of {self.node_id}: {self.status}"


class Gpu(models.Model):
    """A card, and its latest reading. ``state`` missing: it was reported once and no longer is."""

    class State(models.TextChoices):
        OK = "ok"
        LOST = "lost"
        MISSING = "missing"
        ERROR = "error"

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="gpus")
    uuid = models.CharField(max_length=80)
    index = models.PositiveIntegerField()
    name = models.CharField(max_length=120, blank=True)
    serial = models.CharField(max_length=64, blank=True)
    pci_bus_id = models.CharField(max_length=32, blank=True)
    compute_capability = models.CharField(max_length=10, blank=True)
    memory_kind = models.CharField(max_length=10, default="unknown")
    memory_total_bytes = models.BigIntegerField(null=True)
    mig_mode_current = models.BooleanField(null=True)
    mig_mode_pending = models.BooleanField(null=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.OK)
    state_since = models.DateTimeField()
    error = models.TextField(blank=True)
    first_seen = models.DateTimeField()
    read_at = models.DateTimeField(null=True)  # the last report that had a reading of this card
    memory_used_bytes = models.BigIntegerField(null=True)
    utilization_percent = models.SmallIntegerField(null=True)
    temperature_celsius = models.SmallIntegerField(null=True)
    power_watts = models.FloatField(null=True)
    power_limit_watts = models.FloatField(null=True)
    ecc_uncorrectable = models.BigIntegerField(null=True)
    processes = models.JSONField(null=True)
    unreadable_processes = models.PositiveIntegerField(default=0)
    field_errors = models.JSONField(default=dict)
    idle_since = models.DateTimeField(null=True)  # held, measured, and not used since

    class Meta:
        ordering = ["node", "index"]
        constraints = [models.UniqueConstraint(fields=["node", "uuid"], name="one_card_per_node")]

    def __str__(self) -> str:
        return self.uuid


class MigInstance(models.Model):
    """One MIG device of a card, as the last report had it. Placement in memory slices."""

    gpu = models.ForeignKey(Gpu, on_delete=models.CASCADE, related_name="instances")
    uuid = models.CharField(max_length=80)
    profile = models.CharField(max_length=40, blank=True)
    gpu_instance_id = models.PositiveIntegerField(null=True)
    compute_instance_id = models.PositiveIntegerField(null=True)
    compute_slices = models.PositiveSmallIntegerField(null=True)
    placement_start = models.PositiveSmallIntegerField(null=True)
    placement_size = models.PositiveSmallIntegerField(null=True)
    memory_total_bytes = models.BigIntegerField(null=True)
    memory_used_bytes = models.BigIntegerField(null=True)

    class Meta:
        ordering = ["gpu", "placement_start", "gpu_instance_id"]
        constraints = [models.UniqueConstraint(fields=["gpu", "uuid"], name="one_instance_per_gpu")]

    def __str__(self) -> str:
        return self.uuid


class Finding(models.Model):
    """Something that is wrong now, or was. Keyed by code and object; alerts stand on it later."""

    class Severity(models.TextChoices):
        CRITICAL = "critical"
        WARNING = "warning"
        INFO = "info"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="findings")
    code = models.CharField(max_length=40)
    severity = models.CharField(max_length=10, choices=Severity.choices)
    object_kind = models.CharField(max_length=20)
    object_uid = models.CharField(max_length=80)
    object_name = models.CharField(max_length=253)
    node_name = models.CharField(max_length=253, blank=True)
    sentence = models.TextField()
    advice = models.TextField(blank=True)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    count = models.PositiveIntegerField(default=1)
    resolved_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-last_seen"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "code", "object_kind", "object_uid"],
                condition=models.Q(resolved_at__isnull=True),
                name="one_open_finding",
            )
        ]

    def __str__(self) -> str:
        return self.sentence
