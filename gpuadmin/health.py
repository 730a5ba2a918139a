"""What machines ask: does the process live, may it get traffic, is work being done (C43)."""

from datetime import datetime
from typing import Any

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from gpuadmin.fleet.models import Heartbeat

# A cycle may be missed once and run late before we call it late.
LATE_AFTER_CYCLES = 2


@never_cache
@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    """200 while the process answers at all; looks at nothing else."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 with the database reachable and every migration applied, else 503 and a sentence."""
    try:
        executor = MigrationExecutor(connection)
        waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return _not_ready("The database does not answer.")
    if waiting:
        return _not_ready(f"{len(waiting)} migrations are not applied: run manage.py migrate.")
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """`{status: ok|degraded, clusters: {name: {kind: {age_seconds, late, ok}}}}`.

    Degraded means that a collection failed, is late or has never been; `age_seconds` counts from
    the last one that succeeded, null where none has. 503 without a database.
    """
    try:
        beats = list(Heartbeat.objects.select_related("cluster"))
    except DatabaseError:
        reason = "The database does not answer."
        return JsonResponse({"status": "degraded", "reason": reason, "clusters": {}}, status=503)
    now = timezone.now()
    clusters: dict[str, dict[str, Any]] = {}
    for beat in beats:
        clusters.setdefault(beat.cluster.name, {})[beat.kind] = _beat(beat, now)
    well = beats and all(
        kind["ok"] and not kind["late"] for kinds in clusters.values() for kind in kinds.values()
    )
    return JsonResponse({"status": "ok" if well else "degraded", "clusters": clusters})


def _beat(beat: Heartbeat, now: datetime) -> dict[str, Any]:
    age = None if beat.ok_at is None else round((now - beat.ok_at).total_seconds(), 1)
    late = age is None or age > LATE_AFTER_CYCLES * beat.expected_seconds
    return {"age_seconds": age, "late": late, "ok": beat.ok}


def _not_ready(sentence: str) -> HttpResponse:
    return HttpResponse(sentence + "\n", content_type="text/plain", status=503)
