"""Pages of lists: ``page`` and ``page_size`` in the address."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request

MAX_PAGE_SIZE = 500


class Pages(PageNumberPagination):
    """``{count, next, previous, results}``; a size that is none is refused, not bent."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = MAX_PAGE_SIZE

    def get_page_size(self, request: Request) -> int | None:
        text: Any = request.query_params.get("page_size")
        if text is None:
            return self.page_size
        if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_PAGE_SIZE):
            raise ValidationError(
                {"page_size": [f"A whole number from 1 to {MAX_PAGE_SIZE} is needed."]}
            )
        return int(text)
