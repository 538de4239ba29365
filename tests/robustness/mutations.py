"""Mutations that know the structure of a document, and those of its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robustness.nodes import Leaf, Mapping, Node, Path, Sequence, at, children, paths, replaced
from robustness.nodes import without as cut
from robustness.values import AMOUNTS, EXPRESSIONS, HOSTILE, ODD, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence as Sequence_
    from random import Random

_MANY = 40
_DIGITS = 1000
"""Python reads no number of more than 4,300 digits."""

_DEEPEST = 60
_KEYS = 0.2
_EXPRESSIONS_IN_PLACE = 0.25


def changed(rng: Random, root: Node, donors: tuple[Node, ...]) -> Node:
    """The tree with one change; `donors` are trees of which a part may be put into it."""
    path = rng.choice([one for one in paths(root) if len(one) < _DEEPEST])
    return rng.choice(_CHANGES)(rng, root, path, donors)


def changed_below(rng: Random, root: Node, keys: Sequence_[str]) -> Node:
    """The tree with one change to what a key stands for, wherever one of these keys is.

    A large part of a document, such as a machine, would get nearly all changes otherwise.
    """
    key = rng.choice(keys)
    below = [one for one in paths(root) if _is_below(root, one, key) and len(one) < _DEEPEST]
    if not below:
        return changed(rng, root, ())
    path = rng.choice(below)
    part = at(root, path)
    if isinstance(part, Mapping) and part.items and rng.random() < _KEYS:
        spot = rng.randrange(len(part.items))
        renamed = (rng.choice(EXPRESSIONS), part.items[spot][1])
        return replaced(root, path, Mapping((*part.items[:spot], renamed, *part.items[spot + 1 :])))
    if rng.random() < _EXPRESSIONS_IN_PLACE:
        return replaced(root, path, Leaf(rng.choice((*EXPRESSIONS, *AMOUNTS))))
    return rng.choice(_CHANGES)(rng, root, path, ())


def _is_below(root: Node, path: Path, key: str) -> bool:
    """Whether a path leads through a mapping's value of that key, or to it."""
    for depth, step in enumerate(path):
        parent = at(root, path[:depth])
        if isinstance(parent, Mapping) and parent.items[step][0] == key:
            return True
    return False


def _odd(rng: Random, root: Node, path: Path, _donors: tuple[Node, ...]) -> Node:
    return replaced(root, path, rng.choice(ODD))


def _perturbed(rng: Random, root: Node, path: Path, donors: tuple[Node, ...]) -> Node:
    leaves = [one for one in paths(root) if isinstance(at(root, one), Leaf)]
    if not leaves:
        return _odd(rng, root, path, donors)
    path = rng.choice(leaves)
    node = at(root, path)
    value = node.value if isinstance(node, Leaf) else None
    if isinstance(value, str):
        spot = rng.randint(0, len(value))
        made: list[str | float | bool | None] = [
            value[:spot] + rng.choice(TEXTS) + value[spot:],
            value[:spot],
            value[:spot] + value[spot + 1 :],
            value * 2,
            value.swapcase(),
            int(value) if value.isdecimal() and value.isascii() and len(value) < _DIGITS else None,
        ]
    else:
        number = value or 0
        made = [number + 1, number - 1, -number, number * 1000, str(value), number + 0.5]
    return replaced(root, path, Leaf(rng.choice(made)))


def _wrapped(rng: Random, root: Node, path: Path, _donors: tuple[Node, ...]) -> Node:
    node = at(root, path)
    key = rng.choice(("0", "x", "items", "spec"))
    return replaced(root, path, rng.choice((Sequence((node,)), Mapping(((key, node),)))))


def _unwrapped(rng: Random, root: Node, path: Path, donors: tuple[Node, ...]) -> Node:
    below = children(at(root, path))
    return replaced(root, path, rng.choice(below)) if below else _odd(rng, root, path, donors)


def _removed(rng: Random, root: Node, path: Path, donors: tuple[Node, ...]) -> Node:
    return cut(root, path) if path else _unwrapped(rng, root, path, donors)


def _emptied(rng: Random, root: Node, path: Path, donors: tuple[Node, ...]) -> Node:
    node = at(root, path)
    if isinstance(node, Sequence | Mapping):
        return replaced(root, path, type(node)(()))
    return _odd(rng, root, path, donors)


def _repeated(rng: Random, root: Node, path: Path, donors: tuple[Node, ...]) -> Node:
    """A key or an item occurs again, once or many times."""
    if not path:
        return _wrapped(rng, root, path, donors)
    parent = at(root, path[:-1])
    assert isinstance(parent, Sequence | Mapping)
    again = (parent.items[path[-1]],) * rng.choice((1, 1, _MANY))
    return replaced(root, path[:-1], type(parent)((*parent.items, *again)))  # type: ignore[arg-type]


def _renamed(rng: Random, root: Node, path: Path, donors: tuple[Node, ...]) -> Node:
    maps = [one for one in paths(root) if isinstance(at(root, one), Mapping) and at(root, one)]
    maps = [one for one in maps if children(at(root, one))]
    if not maps:
        return _odd(rng, root, path, donors)
    path = rng.choice(maps)
    node = at(root, path)
    assert isinstance(node, Mapping)
    spot = rng.randrange(len(node.items))
    key, value = node.items[spot]
    texts = (key[:-1], key.upper(), f"{key}x", rng.choice(TEXTS), key + rng.choice(HOSTILE))
    renamed = (rng.choice(texts), value)
    return replaced(root, path, Mapping((*node.items[:spot], renamed, *node.items[spot + 1 :])))


def _moved(rng: Random, root: Node, path: Path, donors: tuple[Node, ...]) -> Node:
    """A part of this document or of another one comes to stand here."""
    donor = rng.choice((root, *donors))
    return replaced(root, path, at(donor, rng.choice(list(paths(donor)))))


def _retyped(rng: Random, root: Node, path: Path, donors: tuple[Node, ...]) -> Node:
    node = at(root, path)
    if isinstance(node, Sequence):
        items = tuple((str(number), one) for number, one in enumerate(node.items))
        return replaced(root, path, Mapping(items))
    if isinstance(node, Mapping):
        return replaced(root, path, Sequence(children(node)))
    return _perturbed(rng, root, path, donors)


def _added(rng: Random, root: Node, path: Path, donors: tuple[Node, ...]) -> Node:
    node = at(root, path)
    if isinstance(node, Sequence):
        return replaced(root, path, Sequence((*node.items, rng.choice(ODD))))
    if isinstance(node, Mapping):
        key = rng.choice((*TEXTS, "kind", "metadata", "uid", "policy", "files", "machine"))
        return replaced(root, path, Mapping((*node.items, (key, rng.choice(ODD)))))
    return _odd(rng, root, path, donors)


_CHANGES: tuple[Callable[[Random, Node, Path, tuple[Node, ...]], Node], ...] = (
    _odd,
    _odd,
    _odd,
    _perturbed,
    _perturbed,
    _wrapped,
    _unwrapped,
    _removed,
    _emptied,
    _repeated,
    _renamed,
    _moved,
    _retyped,
    _added,
)


_BYTES = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\x1b[31m", b"\xc2\x9b", b"\xf4\x90")
_HEADS = (b"\xef\xbb\xbf", b"\xff\xfe", b"---\n", b"%YAML 9.9\n---\n")
_BREAKS = (b"\r\n", b"\r", b"\x85", b"\n\n", b"\n\t")
_WHOLES = (b"", b"\n", b"\x00" * 64, b"[" * 5000, b"{" * 3000, b"- " * 500)


def damaged(rng: Random, text: bytes, other: bytes) -> bytes:
    """The bytes of a file with one change; `other` is a file of which a part may be put in."""
    spot = rng.randint(0, len(text))
    end = min(len(text), spot + rng.randint(1, 40))
    lines = text.splitlines(keepends=True) or [b""]
    line = rng.randrange(len(lines))
    mixed = rng.sample(lines, len(lines))
    odd = rng.choice(TEXTS).encode(errors="surrogatepass")
    return rng.choice(
        (
            text[:spot],
            text[:spot] + text[end:],
            text[:spot] + bytes([rng.randrange(256)]) + text[spot + 1 :],
            text[:spot] + rng.choice(_BYTES) + text[spot:],
            text[:spot] + odd + text[spot:],
            b"".join((*lines[:line], *lines[line + 1 :])),
            b"".join((*lines[: line + 1], *lines[line:])),
            b"".join(mixed),
            rng.choice(_HEADS) + text,
            text.replace(b"\n", rng.choice(_BREAKS)),
            rng.choice((*_WHOLES, other)),
            text[:spot] + other[rng.randint(0, len(other)) :],
        )
    )
