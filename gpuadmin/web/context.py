"""What every template knows, error pages too."""

from __future__ import annotations

from django.http import HttpRequest


def theme(request: HttpRequest) -> dict[str, str]:
    """The reader's choice from the cookie; "" leaves it to the system."""
    chosen = request.COOKIES.get("theme", "")
    return {"theme": chosen if chosen in ("light", "dark") else ""}
