"""Refused starts and starts with effects on others: `starts.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from tests.reference.conftest import Player

STARTS = yaml.safe_load(Path(__file__).with_name("starts.yaml").read_bytes())
ROWS = [
    pytest.param(release, row, id=f"{release}-{row.get('says', row['config'])}"[:70])
    for kind in ("refused", "taken")
    for row in STARTS[kind]
    for release in row.get("releases", ["1.35"])
]


@pytest.mark.parametrize(("release", "row"), ROWS)
def test_a_start_is_refused_with_the_releases_message(
    node: Player, release: str, row: dict[str, Any]
) -> None:
    answer = node.start(release=release, config=row["config"])
    stage = row.get("stage", "config")
    assert answer.get("refused") == (
        {"stage": stage, "message": row["says"]} if "says" in row else None
    )
