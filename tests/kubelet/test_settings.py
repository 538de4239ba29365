"""The configuration of a node that exists only in a process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from numaproof.kubelet import settings


@pytest.mark.parametrize(("release", "sent"), [((1, 30), {}), ((1, 31), False), ((1, 37), False)])
def test_a_release_gets_no_field_that_it_does_not_know(
    release: tuple[int, int], sent: Any, tmp_path: Path
) -> None:
    made = settings.configuration({}, release, tmp_path, own_period=False)
    assert made.get("failCgroupV1", {}) == sent


_RESIZE = "InPlacePodLevelResourcesVerticalScaling"


@pytest.mark.parametrize(
    ("release", "wanted", "gates"),
    [
        ((1, 35), None, None),
        ((1, 36), None, {_RESIZE: False}),
        ((1, 36), {"A": True}, {_RESIZE: False, "A": True}),
        ((1, 36), {_RESIZE: True}, {_RESIZE: True}),
        ((1, 36), {"PodLevelResources": False}, {"PodLevelResources": False}),
        ((1, 36), "no map", "no map"),
        ((1, 37), {"A": True}, {"A": True}),
    ],
)
def test_a_gate_that_panics_without_cgroups_is_off(
    release: tuple[int, int], wanted: Any, gates: Any, tmp_path: Path
) -> None:
    fields = {} if wanted is None else {"featureGates": wanted}
    made = settings.configuration(fields, release, tmp_path, own_period=False)
    assert made.get("featureGates") == gates


def test_what_a_user_wants_replaces_the_rest(tmp_path: Path) -> None:
    made = settings.configuration(
        {"cpuManagerPolicy": "static", "failSwapOn": True}, (1, 37), tmp_path, own_period=False
    )
    assert made["cpuManagerPolicy"] == "static"
    assert made["failSwapOn"] is True
    assert made["containerRuntimeEndpoint"] == f"unix://{tmp_path}/cri.sock"


@pytest.mark.parametrize(
    ("fields", "own_period", "period"),
    [
        ({}, False, "100ms"),
        ({}, True, None),
        ({"cpuManagerReconcilePeriod": "5s"}, True, "5s"),
        ({"cpuManagerReconcilePeriod": "5s"}, False, "5s"),
    ],
)
def test_passes_are_frequent_unless_the_period_matters(
    fields: dict[str, Any], period: str | None, tmp_path: Path, *, own_period: bool
) -> None:
    made = settings.configuration(fields, (1, 37), tmp_path, own_period=own_period)
    assert made.get("cpuManagerReconcilePeriod") == period


def test_the_files_that_the_command_line_names_are_written(tmp_path: Path) -> None:
    options = settings.write(tmp_path, {"kind": "KubeletConfiguration"}, 1234)
    named = dict(one.removeprefix("--").split("=") for one in options)
    assert named.keys() == {"config", "kubeconfig", "hostname-override", "cert-dir"}
    assert json.loads((tmp_path / "config.json").read_text()) == {"kind": "KubeletConfiguration"}
    assert named["config"] == f"{tmp_path}/config.json"
    config = json.loads(Path(named["kubeconfig"]).read_text())
    assert config["clusters"][0]["cluster"] == {"server": "http://127.0.0.1:1234"}
    assert config["contexts"][0]["name"] == config["current-context"]
