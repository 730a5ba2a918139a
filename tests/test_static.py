"""Static files as production serves them: hashed, compressed, and complete."""

import re
from pathlib import Path

from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command
from pytest_django.fixtures import Settings

MANIFEST = "whitenoise.storage.CompressedManifestStaticFilesStorage"


def test_every_static_file_that_a_template_names_is_collected(
    settings: Settings, tmp_path: Path
) -> None:
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = settings.STORAGES | {"staticfiles": {"BACKEND": MANIFEST}}
    call_command("collectstatic", interactive=False, verbosity=0)
    named = {
        name
        for template in (settings.BASE_DIR / "templates").rglob("*.html")
        for name in re.findall(r"{%\s*static\s+['\"]([^'\"]+)['\"]", template.read_text())
    }
    assert named
    for name in named:
        hashed = staticfiles_storage.url(name).removeprefix(settings.STATIC_URL)
        assert (tmp_path / hashed).is_file(), name
