"""`numaproof case`: cases listed and shown, and ids that are not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numaproof.conformance.cases import loading

Command = Callable[..., Any]

OWN = """\
defaults:
  config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}
cases:
- id: own-half
  title: Half of a node
  requirements: [CPU-STATIC-001]
  machines: {cpus: ">= 4"}
  let: {half: "cpus_per_node // 2"}
  devices: {vendor.example/nic: "${per_node(1)}"}
  steps:
  - admit: {pod: a, containers: {app: {limits: {cpu: "${half}", memory: 64Mi}}}}
    expect: {containers: {app: {exclusive: {count: "${half}", within: "${all - reserved}"}}}}
"""


def test_list_has_every_id_with_its_title(command: Command) -> None:
    lines = command("case", "list").out.splitlines()
    cases = loading.bundled_cases()
    assert [line.split(maxsplit=1) for line in lines] == [[one.id, one.title] for one in cases]


def test_list_takes_a_glob_and_earlier_ids(command: Command) -> None:
    lines = command("case", "list", "example-*").out.splitlines()
    assert len(lines) == 7
    assert all(line.startswith("example-") for line in lines)
    ended = command("case", "list", "dev-hint-wider-sets-before-1-36")
    assert ended.out.startswith("dev-hint-wider-sets  ")


def test_list_takes_several_patterns_and_leaves_out_what_is_excluded(command: Command) -> None:
    args = ("example-*", "CPU-REMOVE-003", "--exclude", "area:pod-examples")
    lines = command("case", "list", *args).out.splitlines()
    assert lines
    assert not any(line.startswith("example-") for line in lines)


def test_list_as_json_has_what_a_script_asks_for(command: Command) -> None:
    (row,) = command("case", "list", "dev-hint-wider-sets", "--json").json()
    assert row["requirements"] == ["DEV-HINT-003"]
    assert row["level"] == "placement"
    assert "dev-hint-wider-sets-before-1-36" in row["aliases"]


def test_show_merges_the_defaults_of_the_table_and_leaves_expressions(command: Command) -> None:
    ended = command("case", "show", "remove-makes-room")
    assert "cpuManagerPolicy: static" in ended.out
    assert "${cpus - 2}" in ended.out
    Path("case.yaml").write_text(ended.out)
    (wanted,) = (one for one in loading.bundled_cases() if one.id == "remove-makes-room")
    assert loading.read_file(Path("case.yaml")) == (wanted,)


def test_show_fills_in_expressions_on_a_machine(command: Command) -> None:
    Path("own.yaml").write_text(OWN)
    ended = command("case", "show", "own-half", "--cases", "own.yaml", "--machine", "laptop-4c8t")
    assert "${" not in ended.out
    assert "let" not in ended.out
    Path("case.yaml").write_text(ended.out)
    (case,) = loading.read_file(Path("case.yaml"))
    assert case.machines.names == ("laptop-4c8t",)
    assert json.dumps(case.devices["vendor.example/nic"]) == "[[0]]"
    assert "within: 1-7" in ended.out
    assert "count: 4" in ended.out
    assert command("replay", "case.yaml").code == 0


def test_show_takes_an_earlier_id(command: Command) -> None:
    ended = command("case", "show", "dev-hint-device-nodes-alone-since-1-36")
    assert "- id: dev-hint-wider-sets\n" in ended.out


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("list", "exampel-*"), "no case matches 'exampel-*'; did you mean 'example-*'?"),
        (("list", "zzz"), "no case matches 'zzz'; `numaproof case list` lists them"),
        (
            ("show", "remove-make-room"),
            "no case has the id 'remove-make-room'; did you mean 'remove-makes-room'",
        ),
        (("show", "remove-*"), "'remove-*': give an id, not a glob"),
        (
            ("show", "dev-hint-wider-sets", "--machine", "laptop-4c8t"),
            "dev-hint-wider-sets does not run on laptop-4c8t; it runs on",
        ),
        (("show", "remove-makes-room", "--machine", "vm-*"), "machines: name one"),
    ],
)
def test_what_can_not_be_shown_is_2_and_says_what_there_is(
    command: Command, args: tuple[str, ...], complaint: str
) -> None:
    ended = command("case", *args)
    assert ended.code == 2
    assert complaint in ended.err


def test_a_case_with_a_machine_of_its_own_takes_no_other(command: Command) -> None:
    Path("own.yaml").write_text(OWN.replace("  machines: {", "  machine: {}\n  machines: {"))
    ended = command("case", "show", "own-half", "--cases", "own.yaml", "--machine", "laptop-4c8t")
    assert ended.code == 2
    assert "own-half brings its own machine: leave out --machine" in ended.err


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (
            ("check", "--select", "statik-*"),
            "no case matches --select 'statik-*'; did you mean 'static-*'?",
        ),
        (("campaign", "--select", "statik-*", "--no-seeds"), "did you mean 'static-*'?"),
        (
            ("replay", "own.yaml", "--select", "own-hafl"),
            "no case in own.yaml matches --select 'own-hafl'; did you mean 'own-half'?",
        ),
    ],
)
def test_a_selection_of_nothing_suggests_near_ids(
    command: Command, args: tuple[str, ...], complaint: str
) -> None:
    Path("own.yaml").write_text(OWN)
    ended = command(*args)
    assert ended.code == 2
    assert complaint in ended.err
