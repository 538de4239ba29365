"""Only one package opens state directories, which others write to; ruff bans more."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_only_one_package_opens_files_of_a_state_directory() -> None:
    """A state directory's path is passed on as text; nothing below it is accessed."""
    below = set()
    for path in (ROOT / "conformance").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.BinOp | ast.Call) and _is_of_state(node):
                below.add(str(path.relative_to(ROOT)))
    assert not below


_DOES = frozenset(
    {"open", "iterdir", "glob", "rglob", "joinpath", "exists", "mkdir", "unlink", "touch"}
    | {f"{verb}_{what}" for verb in ("read", "write") for what in ("text", "bytes")}
)


def _is_of_state(node: ast.BinOp | ast.Call) -> bool:
    """Returns whether an expression goes below a state directory, such as ``state_dir / name``."""
    match node:
        case ast.BinOp(left=left, op=ast.Div()):
            return _names_state(left)
        case ast.Call(func=ast.Attribute(value=value, attr=name)):
            return name in _DOES and _names_state(value)
        case _:
            return False


def _names_state(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(value=value, attr="path"):
            return _names_state(value)
        case ast.Attribute(attr="state_dir" | "_state_dir") | ast.Name(id="state_dir"):
            return True
        case _:
            return False
