"""Hostile text in every place that an input has, and nothing of it raw in any output."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from robustness import bases, kinds, nodes
from robustness.nodes import Leaf, Mapping, Node
from robustness.trials import Archive, Document, Lines, Text, Trial
from robustness.workers import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = "x\x1b]0;t\x07\x9b5m\x7f\u202e\u2066\u200b\u0600\U000e0041"
"""An operating system command, C1, DEL, marks of direction, what has no width, a tag."""

PROGRAM = shlex.join([sys.executable, "-IS", str(Path(kinds.__file__).with_name("program.py"))])
ON = ("--machine", bases.MACHINE)

HELLO = ("name", "version", "language", "kubernetes", "level", "operations", "policies", "options")
HELLO += ("choices", "homepage", "issues", "protocol", "unknown")
ASKING = (
    ("check", "--cases", "own.yaml", "--select", "merging", *ON, "--implementation"),
    ("replay", "own.yaml", "--select", "merging", *ON, "--implementation"),
    ("doctor",),
    ("record", "--seeds", "0:1", "--merges", "0:1", "--out", "r.jsonl.xz", "--implementation"),
    ("promote", "finding.yaml", "--id", "new-case", "--implementation"),
    ("campaign", "--seeds", "0:1", "--no-cases", "--implementation"),
    ("fuzz", "--max-examples", "1", "--implementation"),
    ("upgrade", "--from", "1.36", "--to", "1.37", *ON, "--implementation"),
    ("diff", "--seeds", "0:1", "--tries", "1", "--right"),
)
FEW = ("name",)
"""Fields of hello that are tried where the slow tests are left out."""

READING = {
    "m.yaml": (bases.profile(bases.MACHINE), (("profile", "show", "m.yaml"),)),
    "own.yaml": (
        bases.document(bases.CASES),
        (
            ("case", "list", "--cases", "own.yaml", "own-*"),
            ("case", "show", "own-case", "--cases", "own.yaml"),
            ("replay", "own.yaml", "--select", "merging", *ON),
        ),
    ),
    "c.yaml": (
        bases.document(bases.CONFIGURATION),
        (("config", "check", "c.yaml", *ON), ("simulate", *ON, "--config", "c.yaml", "p.yaml")),
    ),
    "p.yaml": (
        bases.document(bases.PODS),
        (
            ("simulate", *ON, "--config", "c.yaml", "p.yaml", "--out", "numaproof-report/a.html"),
            ("upgrade", "--from", "1.33", "--to", "1.36", *ON, "--pods", "p.yaml", "--json"),
        ),
    ),
    "d.yaml": (
        bases.document(bases.DEVICES),
        (("simulate", *ON, "--config", "c.yaml", "p.yaml", "--devices", "d.yaml"),),
    ),
}


def poisoned(root: Node) -> Iterator[Node]:
    """The tree with hostile text in one of its texts, or in one of its keys."""
    for path in nodes.paths(root):
        node = nodes.at(root, path)
        if isinstance(node, Leaf) and isinstance(node.value, str):
            yield nodes.replaced(root, path, Leaf(node.value + HOSTILE))
            yield nodes.replaced(root, path, Leaf(HOSTILE))
        if isinstance(node, Mapping):
            for spot, (key, value) in enumerate(node.items):
                items = (*node.items[:spot], (key + HOSTILE, value), *node.items[spot + 1 :])
                yield nodes.replaced(root, path, Mapping(items))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as opened:
        yield opened


def shown_raw(worker: Worker, trials: Iterator[Trial]) -> tuple[list[str], int]:
    """What is wrong with these trials, and how many there were."""
    ended = [worker.play(trial) for trial in trials]
    wrong = {"raw text", "traceback", "broken report"}
    return [one.cause for one in ended if one.problem in wrong], len(ended)


def trials_of_file(name: str, *, terminal: bool, every: int = 1) -> Iterator[Trial]:
    root, ways = READING[name]
    sound = {one: Document(other[0], "yaml") for one, other in READING.items()}
    for number, tree in enumerate(list(poisoned(root))[::every]):
        for way in ways:
            files = {**sound, name: Document(tree, "yaml", escaped=number % 2 == 0)}
            yield Trial("x:0", way, files, terminal=terminal)  # type: ignore[arg-type]


def trials_of_hello(fields: tuple[str, ...], *, terminal: bool) -> Iterator[Trial]:
    told = bases.answers()
    (first, hello), *others = told
    cases = {
        "own.yaml": Document(bases.document(bases.CASES), "yaml"),
        "finding.yaml": Document(bases.finding(), "yaml"),
    }
    for field in fields:
        given = hello["ok"].get(field)
        bad = [HOSTILE] if isinstance(given, list) else {HOSTILE: HOSTILE}
        value = HOSTILE if given is None or isinstance(given, str) else bad
        poisoned_hello = {"id": 0, "ok": {**hello["ok"], field: value}}
        lines = tuple(
            Document(nodes.made(one), "line", before=op.encode() + b"\t")
            for op, one in ((first, poisoned_hello), *others)
        )
        for way in ASKING:
            args = (*way, f"{PROGRAM} answers")
            yield Trial("x:0", args, {"answers": Lines(lines), **cases}, terminal=terminal)


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
@pytest.mark.parametrize("name", READING)
def test_no_text_of_a_file_is_shown_raw(worker: Worker, name: str, terminal: bool) -> None:  # noqa: FBT001
    every = 7 if name == "own.yaml" else 3
    assert shown_raw(worker, trials_of_file(name, terminal=terminal, every=every))[0] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", READING)
def test_no_text_of_a_file_is_shown_raw_wherever_it_stands(worker: Worker, name: str) -> None:
    assert shown_raw(worker, trials_of_file(name, terminal=True))[0] == []


def test_no_text_of_a_program_is_shown_raw(worker: Worker) -> None:
    assert shown_raw(worker, trials_of_hello(FEW, terminal=True)) == ([], 9)


@pytest.mark.slow
def test_no_text_of_a_program_is_shown_raw_by_any_command(worker: Worker) -> None:
    assert shown_raw(worker, trials_of_hello(HELLO, terminal=True)) == ([], 117)


def test_no_name_of_a_file_or_of_a_member_is_shown_raw(worker: Worker) -> None:
    name = HOSTILE + ".yaml"
    archive = Archive(((f"../{HOSTILE}", Text(b"7\n")),))
    trials = [
        Trial("x:0", (*way, name), {name: Text(b"a: [")})
        for way in (("replay",), ("profile", "show"), ("config", "check", *ON), ("discover",))
    ]
    trials += [Trial("x:0", ("discover", "t.tar"), {"t.tar": archive}, terminal=True)]
    trials += [Trial("x:0", (HOSTILE,), {}), Trial("x:0", ("check", f"--{HOSTILE}"), {})]
    trials += [Trial("x:0", ("check", "--select", HOSTILE), {}, terminal=True)]
    assert shown_raw(worker, iter(trials)) == ([], 8)


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_raw_text_would_be_noticed(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:  # noqa: FBT001
    for module in ("shown", "consoles"):
        monkeypatch.setattr(f"numaproof.reports.{module}.visible", str)
    with Worker() as unguarded:
        title = "Removing a pod must make room"
        file = Text(bases.CASES.replace(title, '"\\e[5m\\u202e"').encode())
        way = ("case", "list", "--cases", "own.yaml", "own-*")
        trial = Trial("x:0", way, {"own.yaml": file}, terminal=terminal)
        found, _ = shown_raw(unguarded, iter([trial]))
    what = "format" if terminal else "control"
    assert found == [f"raw text: a {what} character in stdout of case list"]
