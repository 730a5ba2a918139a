"""What every change's sheet does: preview, then run, with each refusal said where it belongs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from gpuadmin.kube.errors import KubeError
from gpuadmin.operations.errors import BadParameters, OperationError, SnapshotMoved
from gpuadmin.operations.models import Operation
from gpuadmin.operations.store import Confirmation, Previewed
from gpuadmin.web.forms.taint import ConfirmForm
from gpuadmin.web.page import Page, in_sheet
from gpuadmin.web.pictures.operations import rail
from gpuadmin.web.pictures.plan import plan_picture


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


def change_page(
    request: HttpRequest, attempt: Attempt, confirm: ConfirmForm, **context: Any
) -> Page:
    """The sheet, or the same as a page of its own where there is no script."""
    shown = attempt.previewed
    return Page(
        "change/sheet.html" if in_sheet(request) else "change/page.html",
        {
            "attempt": attempt,
            "picture": plan_picture(shown) if shown else None,
            "confirm": confirm,
            "rail": rail("Preview" if shown else "Choose"),
            **context,
        },
        status=attempt.status,
    )
