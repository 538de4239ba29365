"""Mutants derived from the reference's rules, each with one small change.

A rule's docstring ends with the requirements that the rule implements, so a changed rule should
fail a case that cites one of them. A mutant replaces the code object of the rule's function,
which works wherever the function has been imported.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from numaproof import reference

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_NAMED = re.compile(r"Requirements: ((?:[A-Z0-9]+(?:-[A-Z0-9]+)*-[0-9]+[,.]\s*)+)")

Change = tuple[str, ast.expr | ast.stmt]
"""The kind of change, and the node that replaces the original."""


@dataclass(frozen=True)
class Mutant:
    """A rule with a small change in it.

    Attributes:
        rule: the rule, as ``module:qualified.name``, relative to the reference.
        change: the original and the changed source text.
        number: distinguishes equal changes in a rule, counting from 1.
        models: the requirements that the rule names.
        code: the code of the changed rule.
    """

    rule: str
    change: str
    number: int
    models: tuple[str, ...]
    code: CodeType
    kubernetes = None
    level = None
    breaks_down = True

    @property
    def id(self) -> str:
        """The rule and the change. Survivors are listed by this id."""
        again = f" ({self.number})" if self.number > 1 else ""
        return f"{self.rule}: {self.change}{again}"

    @contextmanager
    def inject(self) -> Iterator[None]:
        """Changes the rule for the duration of the context."""
        function = rule_function(self.rule)
        own = function.__code__
        function.__code__ = self.code
        _forget()
        try:
            yield
        finally:
            function.__code__ = own
            _forget()


def mutants() -> Iterator[Mutant]:
    """Yields every mutant of every rule, module by module, in source order."""
    for module in _modules():
        path = inspect.getsourcefile(module)
        assert path is not None
        yield from _module_mutants(module.__name__.removeprefix("numaproof.reference."), Path(path))


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(reference.__path__, f"{reference.__name__}."):
        yield importlib.import_module(found.name)


def _module_mutants(name: str, path: Path) -> Iterator[Mutant]:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    for qualified, rule in _rules(tree, ""):
        named = _NAMED.search(ast.get_docstring(rule) or "")
        if not named:
            continue
        requirements = tuple(re.findall(r"[A-Z0-9]+(?:-[A-Z0-9]+)*-[0-9]+", named[1]))
        seen: dict[str, int] = {}
        for node, change in _changes(rule):
            text = f"{_text(node)} -> {_text(change)}"
            seen[text] = seen.get(text, 0) + 1
            code = _compile_mutant(tree, rule, node, change, str(path))
            yield Mutant(f"{name}:{qualified}", text, seen[text], requirements, code)


def _rules(parent: ast.AST, above: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(parent):
        if isinstance(child, ast.FunctionDef):
            yield f"{above}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _rules(child, f"{above}{child.name}.")


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def _compile_mutant(
    tree: ast.Module, rule: ast.FunctionDef, node: ast.AST, change: ast.AST, path: str
) -> CodeType:
    """Compiles a rule with one node replaced."""
    ast.copy_location(change, node)
    ast.fix_missing_locations(change)
    memo = {id(node): change}
    whole = compile(deepcopy(tree, memo), path, "exec", dont_inherit=True)
    return _code_at(whole, rule.name, rule.body[0].lineno)


def _code_at(whole: CodeType, name: str, line: int) -> CodeType:
    """Returns the code object of the named function that contains a line."""
    for inner in whole.co_consts:
        if isinstance(inner, CodeType):
            lines = [at for *_, at in inner.co_lines() if at is not None]
            if inner.co_name == name and inner.co_firstlineno <= line <= max(lines):
                return inner
            try:
                return _code_at(inner, name, line)
            except LookupError:
                continue
    raise LookupError(f"{name} at line {line}")


def _forget() -> None:
    """Clears the project's caches, whose entries were computed with another rule."""
    for one in _caches():
        one.cache_clear()


@cache
def _caches() -> tuple[Any, ...]:
    own = {module for name, module in sys.modules.items() if name.startswith("numaproof.")}
    found = {
        id(value): value
        for module in own
        for holder in (module, *filter(inspect.isclass, vars(module).values()))
        for value in vars(holder).values()
        if hasattr(value, "cache_clear") and value.__module__.startswith(_FORGETFUL)
    }
    return tuple(found.values())


_FORGETFUL = ("numaproof.reference.", "numaproof.conformance.claims.")
"""The modules whose caches depend on the rules. Other caches only hold the content of files."""


@cache
def rule_function(rule: str) -> FunctionType:
    """Returns the function of a rule, stripped of any wrappers."""
    module, _, qualified = rule.partition(":")
    found: Any = importlib.import_module(f"numaproof.reference.{module}")
    for name in qualified.split("."):
        found = inspect.getattr_static(found, name)
    while not isinstance(found, FunctionType):
        found = _unwrap(found)
    return found


def _unwrap(wrapper: Any) -> Any:
    if isinstance(wrapper, property):
        return wrapper.fget
    if isinstance(wrapper, cached_property):
        return wrapper.func
    return getattr(wrapper, "__func__", None) or wrapper.__wrapped__


# Changes

_BOUNDARY = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_OPPOSITE = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.FloorDiv: ast.Mult,
    ast.Mult: ast.FloorDiv,
}


def _changes(rule: ast.FunctionDef) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yields the nodes of a rule's body that can be changed, with their replacements."""
    for statement in rule.body:
        if statement is rule.body[0] and ast.get_docstring(rule):
            continue
        for node in _walk(statement):
            for change in _node_changes(node):
                yield node, change
            for condition in _conditions(node):
                yield condition, ast.UnaryOp(ast.Not(), condition)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yields a node and its descendants in source order, except for annotations."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _walk(child)


def _node_changes(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=more):
            other = {**_BOUNDARY, **_OPPOSITE}.get(type(op))
            if other:
                yield ast.Compare(left, [other()], more)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            if not isinstance(left, ast.JoinedStr | ast.Constant | ast.List | ast.Tuple):
                yield ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield ast.Constant(value + 1)
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()


def _conditions(node: ast.AST) -> Iterator[ast.expr]:
    """Yields the conditions of a node that no other change negates."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            tests = [test]
        case ast.comprehension(ifs=ifs):
            tests = ifs
        case _:
            return
    for test in tests:
        negated = isinstance(test, ast.Compare) and type(test.ops[0]) in _OPPOSITE
        if not negated:
            yield test
