"""The output of --json, and written files, follow the published schemas."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import jsonschema
import pytest

from builders.checkout import ROOT
from builders.input_files import KUBELET, POD
from numaproof.cli import json_schemas
from numaproof.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Command

SCHEMAS = ROOT / "docs" / "schemas"
STATE = '{"policyName":"static","defaultCpuSet":"0-7","checksum":1}'
SMALL = ("--machine", "laptop-4c8t")
REFERENCE = f"{sys.executable} -m numaproof reference"

# A program that admits every pod without exclusive CPUs.
WRONG = """
if request.op == "admit":
    print(json.dumps({"id": request.id, "ok": {"containers": {}}}), flush=True)
else:
    answer(request)
"""

COMMANDS = [
    ("run", "check", *SMALL, "--select", "example-*"),
    ("run", "check", *SMALL, "--select", "example-*", "--implementation", "WRONG"),
    ("run", "fuzz", "--examples", "3", "--seed", "1"),
    ("run", "fuzz", "--examples", "3", "--seed", "1", "--implementation", "WRONG"),
    ("run", "diff", "--seeds", "0:2", "--right", REFERENCE),
    ("run", "replay", "example-guaranteed-integer-is-exclusive", *SMALL),
    ("campaign", "campaign", *SMALL, "--select", "example-*", "--seeds", "0:2", "--workers", "1"),
    ("doctor", "doctor", REFERENCE),
    ("doctor", "doctor", "WRONG"),
    ("board", "board", str(ROOT / "docs" / "board")),
    ("features", "features"),
    ("cases", "case", "list", "example-*"),
    ("simulate", "simulate", "pods.yaml", *SMALL, "--config", "kubelet.yaml", "--explain"),
    ("config", "config", "check", "bad.yaml", *SMALL),
    ("state", "state", "check", "cpu_manager_state", *SMALL),
    ("upgrade", "upgrade", "--from", "1.30", "--to", "1.37", *SMALL, "--pods", "pods.yaml"),
    ("discover", "discover", "tree"),
    ("profiles", "profile", "list"),
]


def schema(name: str) -> dict[str, Any]:
    (file,) = SCHEMAS.glob(f"{name}.v*.json")
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def test_the_published_schemas_match_the_types() -> None:
    written = {file.name: file.read_text("utf-8") for file in SCHEMAS.glob("*.json")}
    assert json_schemas.files() == written, "python docs/schemas/write.py"


def test_every_schema_can_be_printed(command: Command) -> None:
    names = [line.split()[0] for line in command("schema").out.splitlines()]
    assert sorted(names) == sorted([*json_schemas.KINDS, "protocol"])
    assert command("schema", "events").json() == schema("events")
    assert command("schema", "protocol").out == (ROOT / "protocol" / "schema.json").read_text()


def test_the_page_links_to_every_schema() -> None:
    page = (ROOT / "docs" / "json.md").read_text("utf-8")
    names = [file.name for file in SCHEMAS.glob("*.json")]
    assert [name for name in names if f"](schemas/{name})" not in page] == []


def test_every_command_with_json_is_tested() -> None:
    tested = {" ".join(words[1:]) + " " for words in COMMANDS}
    untested = [
        name
        for name in json_commands(cli)
        if not any(words.startswith(f"{name} ") for words in tested)
    ]
    assert untested == []


def json_commands(group: click.Group, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from json_commands(command, f"{before}{name} ")
        elif any("--json" in parameter.opts for parameter in command.params):
            yield f"{before}{name}"


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_json_output_follows_its_schema(
    command: Command, program: Callable[[str], str], words: tuple[str, ...]
) -> None:
    name, *line = (program(WRONG) if word == "WRONG" else word for word in words)
    Path("kubelet.yaml").write_text(KUBELET)
    Path("bad.yaml").write_text(KUBELET + "podPidsLimit: many\n")
    Path("pods.yaml").write_text(POD)
    Path("cpu_manager_state").write_text(STATE)
    if "tree" in line:
        command("profile", "tree", "laptop-4c8t", "--out", "tree")
    ended = command(*line, "--json")
    validator = jsonschema.Draft202012Validator(schema(name))
    assert [problem.message for problem in validator.iter_errors(ended.json())] == []


def test_every_event_follows_its_schema(command: Command, program: Callable[[str], str]) -> None:
    command("check", *SMALL, "--select", "example-*", "--implementation", program(WRONG))
    lines = Path("numaproof-report/check/events.jsonl").read_text("utf-8").splitlines()
    validator = jsonschema.Draft202012Validator(schema("events"))
    assert [line for line in lines if not validator.is_valid(json.loads(line))] == []
