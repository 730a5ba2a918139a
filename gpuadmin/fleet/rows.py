"""Many rows as instances of their model, without what Django does for each of them.

At 1,000 nodes a page reads some 20,000 rows; signals, descriptors and a query set for each card's
instances cost four times what the rows themselves do (docs/performance.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container
from typing import TypeVar

from django.db.models import Model, QuerySet
from django.db.models.base import ModelState

from gpuadmin.fleet.models import Gpu, MigInstance

M = TypeVar("M", bound=Model)


def instances_of(query: QuerySet[M], *, without: Container[str] = ()) -> list[M]:
    """The rows of a query in its order. Fields in ``without`` are read when somebody asks."""
    model = query.model
    names = [f.attname for f in model._meta.concrete_fields if f.name not in without]
    return [_instance(model, names, row, query.db) for row in query.values_list(*names)]


def cards_of(query: QuerySet[Gpu], *, without: Container[str] = ()) -> list[Gpu]:
    """Cards, each with its MIG instances at hand: ``gpu.instances.all()`` asks nothing any more."""
    cards = instances_of(query, without=without)
    found: dict[int, list[MigInstance]] = defaultdict(list)
    for instance in instances_of(MigInstance.objects.filter(gpu__in=query.order_by())):
        found[instance.gpu_id].append(instance)
    none = _told([])
    for card in cards:
        told = _told(found[card.pk]) if card.pk in found else none
        card._prefetched_objects_cache = {"instances": told}  # type: ignore[attr-defined]
    return cards


def _instance(model: type[M], names: list[str], row: tuple[object, ...], db: str) -> M:
    instance = model.__new__(model)
    instance.__dict__ = dict(zip(names, row, strict=True))
    instance._state = ModelState()
    instance._state.adding, instance._state.db = False, db
    return instance


def _told(rows: list[MigInstance]) -> QuerySet[MigInstance]:
    """A query that has its answer, as prefetch_related leaves it."""
    query = MigInstance.objects.all()
    query._result_cache = rows
    query._prefetch_done = True  # type: ignore[attr-defined]
    return query
