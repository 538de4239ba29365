"""Help and completion load few modules, so they answer immediately."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import click
import pytest

from numaproof.cli.commands import COMMANDS
from numaproof.cli.main import cli

LISTED = """
import atexit, json, sys
before = set(sys.modules)
atexit.register(lambda: print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr))
sys.argv = ["numaproof", *{args!r}]
from numaproof.cli.entry import run
run()
"""

SLOW = {
    "dask",
    "distributed",
    "hashlib",
    "hypothesis",
    "jinja2",
    "jsonschema",
    "pyfakefs",
    "redis",
    "rich",
    "yaml",
}
"""Packages that only a run needs."""

WORKING = tuple(
    f"numaproof.{one}."
    for one in (
        *("conformance.cases", "conformance.execution", "conformance.judging"),
        *("fakesys", "campaign", "plugin", "reference", "reports.board", "simulation"),
    )
)
"""Our modules that only a run needs."""

SENTENCES = {name: text for section in COMMANDS.values() for name, text in section.items()}
SUBCOMMANDS = tuple(f"numaproof.cli.{name}" for name in SENTENCES if name != "reference")


def loaded_modules(*args: str, command_line: str | None = None) -> list[str]:
    """Returns the modules that a command loads; `command_line` is completed with TAB."""
    words = (
        {}
        if command_line is None
        else {"COMP_WORDS": command_line, "COMP_CWORD": str(command_line.count(" "))}
    )
    asked = {"_NUMAPROOF_COMPLETE": "bash_complete", **words} if words else {}
    ended = subprocess.run(
        [sys.executable, "-c", LISTED.format(args=args)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **asked},
    )
    assert ended.stdout
    found: list[str] = json.loads(ended.stderr)
    return found


def is_slow(module: str) -> bool:
    """Returns whether only a run needs a module."""
    return module.partition(".")[0] in SLOW or module.startswith(WORKING)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_command_alone_loads_no_subcommand(option: str) -> None:
    assert not [
        one for one in loaded_modules(option) if is_slow(one) or one.startswith(SUBCOMMANDS)
    ]


def test_completing_a_subcommand_loads_none() -> None:
    found = {
        *loaded_modules(command_line="numaproof "),
        *loaded_modules(command_line="numaproof ch"),
    }
    assert not [one for one in found if is_slow(one) or one.startswith(SUBCOMMANDS)]


@pytest.mark.parametrize("name", SENTENCES)
def test_help_does_not_load_what_only_a_run_needs(name: str) -> None:
    assert not [one for one in loaded_modules(name, "--help") if is_slow(one)]


@pytest.mark.parametrize(
    "command_line",
    [
        "numaproof check --ma",
        "numaproof check --machine lap",
        "numaproof campaign --kubernetes 1",
        "numaproof upgrade --to 1",
        "numaproof check --select st",
        "numaproof check --select id:st",
        "numaproof check --exclude requirement:CPU",
        "numaproof promote finding.yaml --requirement CPU",
        "numaproof case show static",
        "numaproof replay static",
    ],
)
def test_completing_options_and_names_loads_little(command_line: str) -> None:
    assert not [one for one in loaded_modules(command_line=command_line) if is_slow(one)]


@pytest.mark.parametrize("name", SENTENCES)
def test_a_subcommand_is_listed_with_the_first_sentence_of_its_help(name: str) -> None:
    _, command, _ = cli.resolve_command(click.Context(cli), [name])
    assert command is not None
    assert command.name == name
    assert SENTENCES[name] == command.get_short_help_str(200)
