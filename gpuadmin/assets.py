"""The static files that come out of packages: the few that a page uses, by name."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import django_htmx
from django.contrib.staticfiles.finders import BaseFinder
from django.core.checks import CheckMessage
from django.core.files.storage import FileSystemStorage
from whitenoise.storage import CompressedManifestStaticFilesStorage

# Name below /static/, and the folder that holds a file of that name. Packages bring far more
# (DRF a whole browsable interface), all of which would be served and compressed.
FILES = {"django_htmx/htmx-2.min.js": Path(django_htmx.__file__).parent / "static"}


class Hashed(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Names of files carry their hash, also where one module imports another."""

    support_js_module_import_aggregation = True


class NamedFiles(BaseFinder):
    """Finds exactly FILES."""

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        return []

    def find(self, path: str, find_all: bool = False) -> str | list[str]:  # type: ignore[override]
        found = [str(FILES[path] / path)] if path in FILES else []
        return found if find_all else next(iter(found), "")

    def list(
        self, ignore_patterns: Iterable[str] | None
    ) -> Iterator[tuple[str, FileSystemStorage]]:
        for name, folder in FILES.items():
            yield name, FileSystemStorage(location=folder)
