"""The language for expressions in cases, which adapt a case to a machine.

In a case, ``${smt * 2}`` stands for a number, and ``${node(0) - reserved}`` for a CPU set. Since
expressions come from files, they can use only arithmetic, comparisons, set operations and the given
names.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet, ListFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_CHARACTERS = 500
"""The maximum length of an expression."""

MAX_ITEMS = 1 << 16
"""The maximum length of a list or string that an expression creates."""

_PLACE = re.compile(r"\$\{([^{}]*)\}")
_WHOLE = re.compile(r"\$\{([^{}]*)\}\Z")

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class ExpressionError(ValueError):
    """An expression is invalid, or has no value on this machine."""


_FAILS = (SyntaxError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
"""Exceptions raised by failing expressions. Comparing a set with a number raises AttributeError."""


def evaluate(source: str, names: Mapping[str, Any]) -> Any:
    """Evaluates an expression.

    Args:
        source: the expression, without ``${`` and ``}``.
        names: values and functions by name.

    Raises:
        ExpressionError: the expression is invalid, uses an unknown name, or fails.
    """
    if len(source) > MAX_CHARACTERS:
        raise ExpressionError(f"{source[:40]!r}...: longer than {MAX_CHARACTERS} characters")
    try:
        found = _value(_parse(source.strip()), names)
    except ExpressionError:
        raise
    except (RecursionError, MemoryError):
        raise ExpressionError(f"{source.strip()[:40]!r}...: nested too deeply") from None
    except _FAILS as error:
        raise ExpressionError(f"{source.strip()!r}: {error}") from None
    if callable(found):
        raise ExpressionError(f"{source.strip()!r} is a function; call it with arguments")
    return found


@lru_cache(maxsize=4096)
def _parse(source: str) -> ast.expr:
    """Parses an expression, cached because every expression is evaluated on many machines."""
    with warnings.catch_warnings():
        # Python's warnings about code such as `1if 1else 2` name no file or line.
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        return ast.parse(source, mode="eval").body


def expand(value: Any, names: Mapping[str, Any]) -> Any:
    """Copies plain values, replacing every ``${...}`` in strings.

    A string that consists of a single expression becomes the expression's value (CPU sets use the
    Linux list format). Within longer strings, the value is inserted as text.

    Raises:
        ExpressionError: an expression fails; see `evaluate`.
    """
    if isinstance(value, str):
        return _expand_text(value, names)
    if isinstance(value, dict):
        return _expand_mapping(value, names)
    if isinstance(value, list | tuple):
        return [expand(item, names) for item in value]
    return value


def _expand_mapping(value: Mapping[Any, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        name = _expand_text(key, names)
        if name is not key:
            if isinstance(name, bool) or not isinstance(name, str | int):
                raise ExpressionError(f"the key '{key}' must be text or a number")
            name = str(name)
        if name in found:
            raise ExpressionError(f"the key '{key}' repeats the key '{name}'")
        found[name] = expand(item, names)
    return found


def _expand_text(text: Any, names: Mapping[str, Any]) -> Any:
    if not isinstance(text, str) or "${" not in text:
        return text
    whole = _WHOLE.match(text)
    if whole:
        value = evaluate(whole[1], names)
        return str(value) if isinstance(value, CPUSet) else value
    return _PLACE.sub(lambda place: str(evaluate(place[1], names)), text)


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    kind = _KINDS.get(type(node))
    if kind is None:
        raise ExpressionError(f"{ast.unparse(node)!r} is not allowed in expressions")
    return _check_size(kind(node, names), node)


def _check_size(value: Any, node: ast.expr) -> Any:
    """Rejects values larger than any machine needs; short expressions could create gigabytes."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise ExpressionError(f"{ast.unparse(node)[:40]!r} does not fit in 64 bits")
    if isinstance(value, str | list) and len(value) > MAX_ITEMS:
        raise ExpressionError(f"{ast.unparse(node)[:40]!r} creates more than {MAX_ITEMS:,} items")
    return value


def _constant(node: ast.Constant, _: Mapping[str, Any]) -> Any:
    if not isinstance(node.value, bool | int | str):
        raise ExpressionError(f"{node.value!r} is neither a number nor text")
    return node.value


def _name(node: ast.Name, names: Mapping[str, Any]) -> Any:
    if node.id not in names:
        known = ", ".join(sorted(names))
        raise ExpressionError(f"{node.id!r} is unknown (expected one of {known})")
    return names[node.id]


def _binary(node: ast.BinOp, names: Mapping[str, Any]) -> Any:
    left, right = _value(node.left, names), _value(node.right, names)
    numbers = isinstance(left, int) and isinstance(right, int)
    if isinstance(node.op, ast.Mult | ast.Mod) and not numbers:
        raise ExpressionError(
            f"{ast.unparse(node)[:40]!r}: only numbers can be multiplied or divided"
        )
    return _of(_BINARY, node.op)(left, right)


def _unary(node: ast.UnaryOp, names: Mapping[str, Any]) -> Any:
    return _of(_UNARY, node.op)(_value(node.operand, names))


def _boolean(node: ast.BoolOp, names: Mapping[str, Any]) -> bool:
    values = (_value(item, names) for item in node.values)
    return all(values) if isinstance(node.op, ast.And) else any(values)


def _compare(node: ast.Compare, names: Mapping[str, Any]) -> bool:
    left = _value(node.left, names)
    for kind, right_node in zip(node.ops, node.comparators, strict=True):
        right = _value(right_node, names)
        if not _of(_COMPARE, kind)(left, right):
            return False
        left = right
    return True


def _call(node: ast.Call, names: Mapping[str, Any]) -> Any:
    function = _value(node.func, names)
    if not callable(function) or node.keywords:
        raise ExpressionError(f"{ast.unparse(node)!r} is not a valid call")
    return function(*(_value(item, names) for item in node.args))


def _of(table: Mapping[Any, Callable[..., Any]], sign: ast.AST) -> Callable[..., Any]:
    if type(sign) not in table:
        raise ExpressionError(f"{type(sign).__name__} is not allowed in expressions")
    return table[type(sign)]


_KINDS: dict[type[ast.expr], Callable[[Any, Mapping[str, Any]], Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.Call: _call,
}


def cpu_set(text: str) -> CPUSet:
    """Implements ``set("0-3")``."""
    try:
        return CPUSet.parse(text)
    except ListFormatError as error:
        raise ExpressionError(str(error)) from None
