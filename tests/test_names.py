"""Names that the field's terms have replaced do not come back."""

from __future__ import annotations

import ast
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
    "favour": "prefer_devices",
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
    """The names of classes, functions, parameters, attributes and constants in a module."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                yield name, node.lineno
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) if name.isupper():
                yield name, node.lineno


def test_a_replaced_name_is_not_given_again() -> None:
    again = [
        f"{path.relative_to(ROOT)}:{line}: {name} (say {REPLACED.get(name, 'MAX_...')})"
        for path in checkout.modules().values()
        for name, line in definitions(path)
        if name in REPLACED or name.removeprefix("_").startswith("MOST_")
    ]
    assert again == []
