"""The glossary defines the words of the public interface, each in a sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
import pytest

import numaproof
from numaproof.cli.main import cli
from numaproof.protocol.events import Outcome
from numaproof.protocol.features import NAMED
from numaproof.protocol.messages import LEVELS
from numaproof.protocol.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

GLOSSARY = Path(__file__).parents[1] / "docs" / "glossary.md"
ENTRY = re.compile(r"- \*\*([^*]+)\*\*: (.+)")
VERBS = {"build", "bundled", "check", "load"}
"""What is done with the nouns in the names of the library."""
GENERIC = {"BOOLEAN", "CMD", "COUNT", "DIR", "DIRECTORY", "FILE", "FILENAME", "FILES", "HOST", "ID"}
GENERIC |= {"INTEGER", "NAME", "PATH", "PORT", "RANGE", "TEXT", "TIME", "URL", "YYYY", "MM", "DD"}
GENERIC |= {"KEY", "VALUE"}
"""Metavars of every command line."""


def normal(term: str) -> str:
    """A term in the singular, in lower case and without hyphens."""
    return re.sub(r"(?<=[a-z]{2})s\b", "", term.lower().replace("-", " "))


def entries() -> dict[str, str]:
    """The definitions by term, as `normal` writes it."""
    lines = GLOSSARY.read_text("utf-8").splitlines()[2:]
    found = [ENTRY.fullmatch(line) for line in lines]
    assert all(found)
    return {normal(one[1]): one[2] for one in found if one}


def commands(group: click.Group) -> Iterator[click.Command]:
    for name in group.list_commands(click.Context(group)):
        _, command, _ = group.resolve_command(click.Context(group), [name])
        assert command is not None
        yield from commands(command) if isinstance(command, click.Group) else (command,)


def library() -> set[str]:
    return {word.lower() for name in numaproof.__all__ for word in name.split("_")} - VERBS


def metavars() -> set[str]:
    """The words in capitals that stand for the values of options and arguments."""
    shown = {
        option.make_metavar(click.Context(command))
        for command in commands(cli)
        for option in command.params
    }
    return {word for one in shown for word in re.findall(r"\b[A-Z]{2,}\b", one)} - GENERIC


WORDS = {
    "library": library(),
    "metavars": metavars(),
    "operations": set(OPERATIONS),
    "features": set(NAMED),
    "levels": set(LEVELS),
    "outcomes": set(get_args(Outcome)),
}


@pytest.mark.parametrize("kind", WORDS)
def test_every_word_of_the_public_interface_is_defined(kind: str) -> None:
    terms = entries()
    # A NUMA node is the only kind of node.
    terms["node"] = terms["numa node"]
    assert WORDS[kind]
    assert sorted(word for word in WORDS[kind] if normal(word) not in terms) == []


def test_a_definition_is_one_sentence() -> None:
    assert {term: text for term, text in entries().items() if not one_sentence(text)} == {}


def one_sentence(text: str) -> bool:
    return (
        re.fullmatch(r"[A-Zn][^.]*(?:\.\w[^.]*)*\.", re.sub(r"`[^`]*`|\([^)]*\)", "X", text))
        is not None
    )


def test_terms_are_in_alphabetical_order() -> None:
    terms = [
        one[1].lower() for one in map(ENTRY.fullmatch, GLOSSARY.read_text().splitlines()) if one
    ]
    assert terms == sorted(set(terms))


def test_the_glossary_is_short() -> None:
    assert len(GLOSSARY.read_text("utf-8").split()) <= 1100
