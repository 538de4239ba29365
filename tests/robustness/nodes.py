"""A document as a tree that may hold what no parser makes: duplicate keys, tags, broken scalars."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Form = Literal["yaml", "json", "line"]
"""How a tree is written: YAML, JSON over several lines, or JSON in one."""


@dataclass(frozen=True)
class Leaf:
    """A scalar."""

    value: str | float | bool | None


@dataclass(frozen=True)
class Raw:
    """A value as it stands in the file, well-formed or not."""

    text: str


@dataclass(frozen=True)
class Sequence:
    """A list."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Mapping:
    """A mapping; a key may occur twice."""

    items: tuple[tuple[str, Node], ...]


Node = Leaf | Raw | Sequence | Mapping
Path = tuple[int, ...]
"""The way to a node: the place of each step among the items of a list or mapping."""


def made(value: Any) -> Node:
    """The tree of a plain value."""
    if isinstance(value, dict):
        return Mapping(tuple((str(key), made(one)) for key, one in value.items()))
    if isinstance(value, (list, tuple)):
        return Sequence(tuple(made(one) for one in value))
    return Leaf(value)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below a node."""
    if isinstance(node, Sequence):
        return node.items
    return tuple(one for _, one in node.items) if isinstance(node, Mapping) else ()


def paths(node: Node, above: Path = ()) -> Iterator[Path]:
    """The ways to all nodes, from the root down."""
    yield above
    for number, child in enumerate(children(node)):
        yield from paths(child, (*above, number))


def at(node: Node, path: Path) -> Node:
    """The node that a path leads to."""
    for step in path:
        node = children(node)[step]
    return node


def replaced(node: Node, path: Path, new: Node) -> Node:
    """The tree with another node at a path."""
    if not path:
        return new
    first, *rest = path
    child = replaced(children(node)[first], tuple(rest), new)
    if isinstance(node, Sequence):
        return Sequence((*node.items[:first], child, *node.items[first + 1 :]))
    assert isinstance(node, Mapping)
    key = node.items[first][0]
    return Mapping((*node.items[:first], (key, child), *node.items[first + 1 :]))


def without(node: Node, path: Path) -> Node:
    """The tree without the node at a path, which is not the root."""
    *above, last = path
    parent = at(node, tuple(above))
    assert isinstance(parent, Sequence | Mapping)
    left = (*parent.items[:last], *parent.items[last + 1 :])
    return replaced(node, tuple(above), type(parent)(left))  # type: ignore[arg-type]


def written(node: Node, form: Form, *, escaped: bool = True) -> str:
    """The tree as text.

    With `escaped`, all that is not ASCII is written as an escape, as are control characters always.
    """
    if form == "line":
        return "".join(_json(node, None, 0, escaped=escaped))
    if form == "json":
        return "".join(_json(node, 1, 0, escaped=escaped)) + "\n"
    if isinstance(node, Sequence | Mapping) and node.items:
        return "\n".join(_yaml(node, "", escaped=escaped)) + "\n"
    return _in_yaml(_scalar(node, escaped=escaped)) + "\n"


def _quoted(value: object, *, escaped: bool) -> str:
    """A scalar in JSON."""
    return json.dumps(value, ensure_ascii=escaped)


def _in_yaml(text: str) -> str:
    """A scalar in JSON as YAML has it: one escape for two surrogates, and no raw controls."""
    text = re.sub("[\x7f-\x9f]", lambda one: f"\\u{ord(one[0]):04x}", text)
    return _PAIR.sub(lambda pair: f"\\U{ord(json.loads(_QUOTE + pair[0] + _QUOTE)):08x}", text)


_QUOTE = '"'
_PAIR = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}")


def _scalar(node: Node, *, escaped: bool) -> str:
    if isinstance(node, Raw):
        return node.text
    if isinstance(node, Leaf):
        return _quoted(node.value, escaped=escaped)
    return "[]" if isinstance(node, Sequence) else "{}"


def _yaml(node: Node, indent: str, *, escaped: bool) -> Iterator[str]:
    assert isinstance(node, Sequence | Mapping)
    heads = (
        [f"{indent}-"] * len(node.items)
        if isinstance(node, Sequence)
        else [f"{indent}{_in_yaml(_quoted(key, escaped=escaped))}:" for key, _ in node.items]
    )
    for head, child in zip(heads, children(node), strict=True):
        if isinstance(child, Sequence | Mapping) and child.items:
            yield head
            yield from _yaml(child, indent + "  ", escaped=escaped)
        else:
            yield f"{head} {_in_yaml(_scalar(child, escaped=escaped))}"


def _json(node: Node, step: int | None, depth: int, *, escaped: bool) -> Iterator[str]:
    if not isinstance(node, Sequence | Mapping) or not node.items:
        yield _scalar(node, escaped=escaped)
        return
    inner = "" if step is None else "\n" + " " * step * (depth + 1)
    outer = "" if step is None else "\n" + " " * step * depth
    yield "[" if isinstance(node, Sequence) else "{"
    for number, child in enumerate(children(node)):
        yield ("," if number else "") + inner
        if isinstance(node, Mapping):
            yield _quoted(node.items[number][0], escaped=escaped) + ":"
        yield from _json(child, step, depth + 1, escaped=escaped)
    yield outer + ("]" if isinstance(node, Sequence) else "}")
