"""Pages of lists: ``page`` and ``page_size`` in the address."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request

from gpuadmin.api.problems import Missing

MAX_PAGE_SIZE = 500


class Pages(PageNumberPagination):
    """``{count, next, previous, results}``; a number that is none is refused, not bent."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = MAX_PAGE_SIZE

    def get_page_number(self, request: Request, paginator: Any) -> int:
        text = request.query_params.get(self.page_query_param, "1")
        if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
            raise ValidationError({"page": ["A whole number from 1 is needed."]})
        if int(text) > paginator.num_pages:
            raise Missing(f"There is no page {int(text)}: the last is {paginator.num_pages}.")
        return int(text)

    def get_page_size(self, request: Request) -> int | None:
        text: Any = request.query_params.get("page_size")
        if text is None:
            return self.page_size
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_PAGE_SIZE):
            raise ValidationError(
                {"page_size": [f"A whole number from 1 to {MAX_PAGE_SIZE} is needed."]}
            )
        return int(text)
