"""The watch process on a scripted API, read through the doors of the product."""

from tests.support.watching import api, console, watch

__all__ = ["api", "console", "watch"]
