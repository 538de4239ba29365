"""The documentation's pictures match the output of docs/pictures/draw.py."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
SCRIPT = runpy.run_path(str(PICTURES / "draw.py"))


@pytest.mark.parametrize("scene", SCRIPT["scenes"]())
def test_pictures_match_the_output_of_simulate(tmp_path: Path, scene: str) -> None:
    drawn = tmp_path / "drawn.svg"
    SCRIPT["draw"](SCRIPT["scenes"]()[scene], drawn)
    kept = (PICTURES / f"{scene}.svg").read_text("utf-8")
    assert drawn.read_text("utf-8") == kept, "python docs/pictures/draw.py"


def test_every_picture_has_a_scene_and_is_used() -> None:
    scenes = {f"{name}.svg" for name in SCRIPT["scenes"]()}
    pages = "".join(page.read_text("utf-8") for page in PICTURES.parent.glob("*.md"))
    assert {path.name for path in PICTURES.glob("*.svg")} == scenes
    assert [name for name in scenes if f"](pictures/{name})" not in pages] == []
