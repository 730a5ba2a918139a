"""What machines ask: does the process live, may it get traffic, is work being done (C43)."""

from typing import Any

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis import RedisError

from gpuadmin import env
from gpuadmin.ears import queue_at
from gpuadmin.fleet.queries import Freshness, clusters, freshness


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
    """`{status: ok|degraded, queue: ok|away, clusters: {name: {kind: {age_seconds, late, ok}}}}`.

    Degraded means that a collection failed, is late or has never been, or that the queue does not
    answer within 0.5 s; `age_seconds` counts from the last one that succeeded, null where none
    has. 503 without a database.
    """
    now = timezone.now()
    queue = "ok" if _queue_answers() else "away"
    try:
        found = {one.name: freshness(one, now) for one in clusters()}
    except DatabaseError:
        reason = "The database does not answer."
        told = {"status": "degraded", "queue": queue, "reason": reason, "clusters": {}}
        return JsonResponse(told, status=503)
    well = (
        queue == "ok"
        and found
        and all(f.ok and not f.late for each in found.values() for f in each)
    )
    shown = {name: {f.kind: _shown(f) for f in each} for name, each in found.items()}
    told = {"status": "ok" if well else "degraded", "queue": queue, "clusters": shown}
    return JsonResponse(told)


def _queue_answers() -> bool:
    try:
        with queue_at(env.REDIS_URL.read()) as queue:
            return bool(queue.ping())
    except (RedisError, OSError):
        return False


def _shown(cycle: Freshness) -> dict[str, Any]:
    age = None if cycle.age_seconds is None else round(cycle.age_seconds, 1)
    return {"age_seconds": age, "late": cycle.late, "ok": cycle.ok}


def _not_ready(sentence: str) -> HttpResponse:
    return HttpResponse(sentence + "\n", content_type="text/plain", status=503)
