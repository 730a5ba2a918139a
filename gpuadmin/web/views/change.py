"""What every change's sheet does: preview, then run, with each refusal said where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from gpuadmin.fleet.models import Node
from gpuadmin.kube.errors import KubeError
from gpuadmin.operations import services
from gpuadmin.operations.errors import BadParameters, OperationError, SnapshotMoved
from gpuadmin.operations.models import Operation
from gpuadmin.operations.store import Confirmation, Previewed
from gpuadmin.web.forms.confirm import ConfirmForm
from gpuadmin.web.page import Here, Page, in_sheet
from gpuadmin.web.pictures.operations import rail
from gpuadmin.web.pictures.plan import plan_picture
from gpuadmin.web.pictures.text import count


@dataclass(frozen=True)
class Attempt:
    """What became of a preview or a run: a plan to show, and what stands against it."""

    previewed: Previewed | None = None
    errors: dict[str, str] = field(default_factory=dict)  # field → sentence
    problem: str = ""
    moved: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        return 422 if self.errors or self.problem or self.moved else 200


def try_preview(preview: Callable[[], Previewed]) -> Attempt:
    """A preview, or the sentences of why there is none."""
    try:
        return Attempt(preview())
    except BadParameters as error:
        return Attempt(errors=error.fields)
    except OperationError as error:
        return Attempt(problem=str(error))
    except KubeError as error:
        return Attempt(problem=error.sentence)


def run(
    form: ConfirmForm,
    create: Callable[[Confirmation], tuple[Operation, bool]],
    preview: Callable[[], Previewed],
) -> HttpResponse | Attempt:
    """Makes the operation and goes to its page; else the plan again, with the reason."""
    try:
        operation, _ = create(form.confirmation())
    except SnapshotMoved as error:
        return replace(try_preview(preview), moved=tuple(error.difference))
    except BadParameters as error:
        return replace(try_preview(preview), errors=error.fields)
    except OperationError as error:
        return replace(try_preview(preview), problem=str(error))
    except KubeError as error:
        return Attempt(problem=error.sentence)
    response = HttpResponseRedirect(reverse("operation", args=[operation.pk]))
    response.status_code = 303
    return response


@dataclass(frozen=True)
class Sheet:
    """What a change's sheet says around its plan. ``hidden`` goes along with the confirmation;
    ``back`` is where Cancel leads without script; ``lasts``: it may be put back by itself.
    """

    heading: str
    post_to: str
    back: str
    hidden: list[tuple[str, str]] = field(default_factory=list)
    lasts: bool = True


def change_page(
    request: HttpRequest, attempt: Attempt, confirm: ConfirmForm, sheet: Sheet, **context: Any
) -> Page:
    """The sheet, or the same as a page of its own where there is no script."""
    shown = attempt.previewed
    return Page(
        "change/sheet.html" if in_sheet(request) else "change/page.html",
        {
            "attempt": attempt,
            "picture": plan_picture(shown) if shown else None,
            "confirm": confirm,
            "sheet": sheet,
            "rail": rail("Preview" if shown else "Choose"),
            **context,
        },
        status=attempt.status,
    )


def run_or_preview(
    request: HttpRequest,
    here: Here,
    change: tuple[str, dict[str, Any]],
    confirm: ConfirmForm,
    *,
    ready: bool = True,
) -> Attempt | HttpResponse:
    """POST runs ``change``, a kind and its parameters; GET previews it once it is ``ready``."""

    def preview() -> Previewed:
        return services.preview(here.actor, here.cluster, *change)

    def create(confirmation: Confirmation) -> tuple[Operation, bool]:
        return services.create(here.actor, here.cluster, *change, confirmation)

    if request.method == "POST":
        return run(confirm, create, preview)
    return try_preview(preview) if ready else Attempt()


def heading(what: str, names: Sequence[str]) -> str:
    """``Taints of h100-01``, ``Cordon 3 nodes``."""
    return f"{what} {names[0] if len(names) == 1 else count(len(names), 'node')}"


def not_there(names: Sequence[str], nodes: Sequence[Node]) -> str:
    """The sentence for names that no present node bears; "" when all are there."""
    missing = sorted(set(names) - {node.name for node in nodes})
    return f"There is no node {', '.join(missing)} in this cluster now." if missing else ""
