"""Draws the documentation's pictures by running `numaproof simulate` with pictures.yaml.

python docs/pictures/draw.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from numaproof.cli.main import cli

FOLDER = Path(__file__).parent


def scenes() -> dict[str, Any]:
    """Returns the scenes in pictures.yaml by name."""
    table: dict[str, Any] = yaml.safe_load((FOLDER / "pictures.yaml").read_text("utf-8"))
    return table


def draw(scene: dict[str, Any], target: Path) -> None:
    """Writes the picture of a scene."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            **scene["config"],
        }
        pods = [_pod(pod, limits) for pod, limits in scene["pods"].items()]
        (folder / "kubelet.yaml").write_text(yaml.safe_dump(config))
        (folder / "pods.yaml").write_text(yaml.safe_dump_all(pods))
        arguments = ["--machine", scene["machine"], "--config", f"{folder}/kubelet.yaml"]
        if "devices" in scene:
            arguments += ["--devices", scene["devices"]]
        if scene.get("documented"):
            arguments += ["--baseline", "documented"]
        arguments += ["--out", str(target), f"{folder}/pods.yaml"]
        ended = CliRunner().invoke(cli, ["simulate", *arguments], catch_exceptions=False)
        if not target.exists():
            raise SystemExit(ended.output)


def _pod(name: str, limits: dict[str, Any]) -> dict[str, Any]:
    resources = {"requests": limits, "limits": limits}
    if str(limits["cpu"]).endswith("m"):
        resources = {"requests": limits}
    container = {"name": "main", "image": "app", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


if __name__ == "__main__":
    for scene_name, content in scenes().items():
        draw(content, FOLDER / f"{scene_name}.svg")
