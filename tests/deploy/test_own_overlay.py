"""The overlay of one's own that docs/deploy.md shows, with every component in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from gpuadmin.kube.capabilities import components
from tests.deploy.manifests import DEPLOY
from tests.deploy.written import ROOT


def test_it_renders_with_images_of_ones_own_and_every_grant_for_our_account(
    tmp_path: Path,
) -> None:
    shown = re.search(r"```yaml\n(.*?)```", (ROOT / "docs" / "deploy.md").read_text(), re.DOTALL)
    assert shown
    text = shown[1].replace("../gpuadmin/deploy", os.path.relpath(DEPLOY, tmp_path.resolve()))
    overlay = yaml.safe_load(text)
    wanted = [one.name for one in components("gpuadmin", "nvidia-device-plugin")]
    base = overlay["resources"][0].removesuffix("/base")
    folders = {f"{base}/components/{name}" for name in wanted if name != "read"}
    overlay["resources"] = sorted({*overlay["resources"], *folders})
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    kubectl = Path(sys.executable).with_name("kubectl")
    printed = subprocess.run(
        [kubectl, "kustomize", tmp_path], check=True, capture_output=True, text=True
    ).stdout
    rendered = list(yaml.safe_load_all(printed))
    subjects = [one for found in rendered for one in found.get("subjects", [])]
    assert subjects
    assert all(one["name"] == one["namespace"] == "gpuadmin" for one in subjects)
    images = set(re.findall(r"image: (\S+)", printed))
    assert images == {
        "images.example.org/gpuadmin-server:0.1.0",
        "images.example.org/gpuadmin-agent:0.1.0",
    }
