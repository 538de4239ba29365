"""Invariants share no code with the reference, because they would share its bugs."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from numaproof.conformance.judging import invariants

if TYPE_CHECKING:
    from collections.abc import Iterator

JUDGING = "numaproof.conformance.judging"
OWN = {
    f"{JUDGING}.pods",
    f"{JUDGING}.entitlement",
    invariants.__name__,
    *(
        f"{invariants.__name__}.{file.stem}"
        for file in Path(invariants.__file__).parent.glob("[!_]*.py")
    ),
}
"""The modules of the invariants."""


def source(module: str) -> ast.Module | None:
    """Returns a module's source, or None if the name isn't a module."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        return None
    assert spec is None or spec.origin
    return ast.parse(Path(str(spec.origin)).read_text(encoding="utf-8")) if spec else None


def imports(tree: ast.AST) -> Iterator[str]:
    """Returns imported modules, and imported names that may be modules, even in functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


class Running(ast.NodeTransformer):
    """Removes imports for types, which never run."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        """Removes ``if TYPE_CHECKING:``."""
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else node


def test_the_invariants_do_not_import_the_reference() -> None:
    waiting, seen = sorted(OWN), set()
    while waiting:
        module = waiting.pop()
        tree = source(module)
        if module in seen or tree is None:
            continue
        seen.add(module)
        for one in imports(tree if module in OWN else Running().visit(tree)):
            assert not one.startswith("numaproof.reference"), f"{module} imports {one}"
            # Importing a module imports its parent packages.
            parts = one.split(".")
            if parts[:2] == ["numaproof", "conformance"]:
                waiting += [".".join(parts[:end]) for end in range(2, len(parts) + 1)]
    # The search also goes beyond the first modules.
    assert "numaproof.conformance.cases.loading" in seen
