"""Replaced names don't come back."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from builders import checkout
from builders.checkout import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPLACED = {
    "Callee": "Answering",
    "FileFate": "FileOutcome",
    "FoundTree": "ExistingTree",
    "GaveUp": "ProbeAborted",
    "HeldTree": "InMemoryTree",
    "IdleRun": "NullRun",
    "MadeTree": "GeneratedTree",
    "NotBuiltError": "UnsupportedError",
    "Parted": "BaselineDivergence",
    "PodFate": "PodOutcome",
    "SteeredImplementation": "SteerableReference",
    "ToldPlace": "OptionalField",
    "Watched": "ProcessBacked",
    "at_once": "peak",
    "check_again": "revalidate",
    "departing": "with_deviations",
    "exclusive_cpus_at_once": "peak_exclusive_cpus",
    "favour": "prefer",
    "found_file": "checkpoint_pair",
    "how_many": "countable",
    "odd_start": "unusual_start",
    "passes": "runs_to_completion",
    "reclaim": "remove_stale_state",
    "taken_again": "reusable_first",
    "told_config": "effective_config",
    "usual": "default_baseline",
}


def definitions(path: Path) -> Iterator[tuple[str, int]]:
    """Returns the names of classes, functions, parameters, attributes and constants in a module."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.ClassDef(name=name, body=body):
                yield name, node.lineno
                for one in body:
                    if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                        yield one.target.id, one.lineno
            case ast.FunctionDef(name=name) | ast.arg(arg=name):
                yield name, node.lineno
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) if name.isupper():
                yield name, node.lineno


# Field terms, the two sides of a comparison, and keys of the protocol or of JSON output.
ALLOWED = {
    *("admitted", "allocated", "asked", "discovered", "distributed", "expected", "isolated"),
    *("left", "met", "preempted", "preferred", "refused", "reserved", "shared", "truncated"),
    *("typed", "unaffected", "undiscovered", "unspecified", "unsupported", "untested"),
}
IRREGULAR = {
    *("begun", "bought", "bound", "broken", "brought", "built", "caught", "chosen", "dealt"),
    *("done", "drawn", "driven", "due", "fallen", "felt", "forgotten", "found", "given", "gone"),
    *("got", "grown", "heard", "held", "hidden", "kept", "known", "laid", "lent", "lost", "made"),
    *("meant", "paid", "proven", "said", "seen", "sent", "shown", "sold", "spent", "spoken"),
    *("stood", "stuck", "taken", "taught", "thought", "told", "torn", "understood", "won"),
    *("worn", "written", "one", "ones", "another"),
}
NOUNS = {"bed", "bound", "deed", "feed", "hundred", "need", "seed", "shed", "speed"}


def is_bare_participle(name: str) -> bool:
    """Returns whether a name is a bare participle, or `one`."""
    bare = name.strip("_")
    if bare in ALLOWED | NOUNS:
        return False
    return bare in IRREGULAR or re.fullmatch("[a-z]{2,}ed", bare) is not None


def test_no_name_is_a_bare_participle() -> None:
    files = [*checkout.modules().values()]
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in files
        for name, line in definitions(path)
        if is_bare_participle(name)
    ]
    found += [str(path.relative_to(ROOT)) for path in files if is_bare_participle(path.stem)]
    assert found == []


def test_a_replaced_name_does_not_return() -> None:
    again = [
        f"{path.relative_to(ROOT)}:{line}: {name} (say {REPLACED.get(name, 'MAX_...')})"
        for path in checkout.modules().values()
        for name, line in definitions(path)
        if name in REPLACED or name.removeprefix("_").startswith("MOST_")
    ]
    assert again == []
