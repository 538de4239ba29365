"""Code whose change nothing could notice, or should: it is not mutated, and here is why."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cosmic_ray.work_item import MutationSpec

TYPES = "types: annotations and aliases are read by the type checker, not when the code runs"
GUARDS = "declarations that guard against mistakes (immutable, abstract) and change no answer"
IDENTITY = "`is` for `==`: what it says of numbers and texts is up to the interpreter"

_GUARDS = {"frozen", "slots", "repr"}
"""Arguments of dataclasses and their fields which only keep from mistakes, or are for reading."""

_BUILT_IN = {"bool", "float", "int", "str"}


@dataclass(frozen=True)
class Span:
    """From one place to another, as (line, column); and why what is in it is not mutated."""

    start: tuple[int, int]
    end: tuple[int, int]
    why: str

    def holds(self, mutation: MutationSpec) -> bool:
        """Whether a mutation is within it."""
        start: tuple[int, int] = mutation.start_pos
        end: tuple[int, int] = mutation.end_pos
        return self.start <= start and end <= self.end


def reason(mutation: MutationSpec, spans: list[Span]) -> str | None:
    """Why a mutation is not made; None where it is.

    Args:
        mutation: of a module.
        spans: those of the module.
    """
    operator: str = mutation.operator_name
    *_, before, after = ["", *operator.split("_")]
    if after.startswith("Is") and not before.startswith("Is"):
        return IDENTITY
    return next((span.why for span in spans if span.holds(mutation)), None)


def spans(source: str) -> list[Span]:
    """The parts of a module that are not mutated."""
    return [span for node in ast.walk(ast.parse(source)) for span in _parts(node)]


def _parts(node: ast.AST) -> Iterator[Span]:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            yield _span(node, TYPES)
        case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
            yield _span(annotation, TYPES)
        case ast.FunctionDef():
            yield from _of_function(node)
        case ast.Module():
            for one in node.body:
                if isinstance(one, ast.Assign) and _is_union(one.value):
                    yield _span(one, TYPES)
        case ast.keyword(arg=str(name), value=ast.Constant(value=bool())) if name in _GUARDS:
            yield _span(node, GUARDS)


def _of_function(node: ast.FunctionDef) -> Iterator[Span]:
    if node.returns is not None:
        yield _span(node.returns, TYPES)
    for one in node.decorator_list:
        if isinstance(one, ast.Name) and one.id == "abstractmethod":
            # With its sign and the end of its line, as Cosmic Ray removes it.
            yield Span((one.lineno, one.col_offset - 1), (one.lineno + 1, 0), GUARDS)


def _is_union(node: ast.expr) -> bool:
    """Whether an expression is ``A | B`` of names that are written as those of types are."""
    match node:
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return all(_is_type(one) or _is_union(one) for one in (left, right))
    return False


def _is_type(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=None) | ast.Subscript():
            return True
        case ast.Name(id=name):
            return name in _BUILT_IN or (name[0].isupper() and not name.isupper())
    return False


def _span(node: ast.expr | ast.stmt | ast.keyword, why: str) -> Span:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return Span((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), why)
