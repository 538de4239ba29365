"""`numaproof features`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

from numaproof.cli.features import features
from numaproof.protocol.features import FEATURES

if TYPE_CHECKING:
    import pytest


def test_it_lists_every_feature_with_how_it_is_claimed() -> None:
    shown = CliRunner().invoke(features).output
    assert "sidecars" in shown
    assert "operation" in shown


def test_no_name_is_cut_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    lines = CliRunner().invoke(features).output.splitlines()
    assert max(map(len, lines)) <= 80
    assert set(FEATURES) <= set(" ".join(lines).split())


def test_no_cell_is_folded_where_no_terminal_limits_the_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = CliRunner().invoke(features).output.splitlines()
    for name, feature in FEATURES.items():
        (line,) = (one for one in lines if one.split()[:1] == [name])
        assert feature.meaning in line
    assert not any(line.endswith(" ") for line in lines)


def test_as_json_it_tells_all_of_each_feature() -> None:
    rows = json.loads(CliRunner().invoke(features, ["--json"]).output)
    assert [row["name"] for row in rows] == [*FEATURES]
    assert rows[0] == {
        "name": "init-containers",
        "support": "core",
        "meaning": FEATURES["init-containers"].meaning,
        "claimed_by": "its name in features",
        "operations": ["admit"],
        "cases": rows[0]["cases"],
    }
