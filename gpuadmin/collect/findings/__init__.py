"""What is wrong now, from what is stored: rules that yield facts, then one sync."""

from __future__ import annotations

from datetime import datetime

from gpuadmin.collect.findings import clocks, counts, cycles, labels, nodes, pods
from gpuadmin.fleet.models import Cluster
from gpuadmin.fleet.queries import freshness
from gpuadmin.fleet.services import sync_findings
from gpuadmin.workloads.queries import gpu_records

CODES = (*nodes.CODES, *counts.CODES, *labels.CODES, *clocks.CODES, *pods.CODES, *cycles.CODES)


def refresh_findings(cluster: Cluster, now: datetime) -> None:
    """Look at everything once and bring the table of findings up to date.

    A fixed number of queries, however many nodes and pods there are.
    """
    records = gpu_records(cluster, now)
    facts = [
        *(fact for record in records for fact in nodes.of_node(record)),
        *(fact for record in records for fact in counts.of_counts(record)),
        *(fact for record in records for fact in labels.of_labels(record, now)),
        *clocks.of_clocks(records),
        *pods.of_pods(cluster),
        *cycles.of_cycles(freshness(cluster, now)),
    ]
    sync_findings(cluster, CODES, facts, now)
