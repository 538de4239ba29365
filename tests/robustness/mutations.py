"""Strategies that mutate documents by structure, and files by bytes."""

from __future__ import annotations

import copy
import json
import re
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Draw = Callable[[st.SearchStrategy[Any]], Any]

Form = Literal["yaml", "json", "line"]
"""The format of a document: YAML, JSON on several lines, or JSON on one."""


class Raw(str):
    """A value written without quotes, even if that is malformed."""

    __slots__ = ()


_ODD = yaml.safe_load(Path(__file__).with_name("sound").joinpath("odd.yaml").read_bytes())
HOSTILE = (*_ODD["hostile"], "\ud800")
EXPRESSIONS = (
    *(f"${{{one}}}" for one in _ODD["expressions"]),
    "${",
    "${" + "(" * 300 + "1" + ")" * 300 + "}",
    "${" + "-" * 3000 + "1}",
    "${" + "9" * 5000 + "}",
)
_LONG = ("9" * 40, "9" * 501, "9" * 600 + "Gi", "9" * 5000, "x" * 300, "a" * 70_000)
TEXTS = (
    *(*_ODD["texts"], *_ODD["amounts"], *_LONG),
    *(*EXPRESSIONS, *(one[2:-1] for one in EXPRESSIONS), *HOSTILE),
)
_RAW = (*_ODD["raw"], "9" * 400, "9" * 4301, "1." + "0" * 400)
_DEEP = tuple("[" * depth + "1" + "]" * depth for depth in (30, 60, 1500))
texts = st.sampled_from(TEXTS) | st.text(max_size=9)
odd = st.one_of(
    st.sampled_from(_ODD["values"]),
    texts,
    st.sampled_from((*map(Raw, (*_RAW, *_DEEP)), list(range(300)))),
    st.integers() | st.floats(),
)
"""Values of any type to replace parts of an input."""

_DEEPEST = 60
_MAX_DIGITS = 1000
_NAMES = ("kind", "metadata", "uid", "policy", "files", "machine")


def paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the paths of keys and indices to all parts of a document, from the root down."""
    yield above
    if len(above) < _DEEPEST:
        for key, one in _items(value):
            yield from paths(one, (*above, key))


def _items(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


@st.composite
def changed_documents(draw: Draw, root: Any, keys: Sequence[str] = ()) -> Any:
    """Generates a document with one change.

    Args:
        draw: provided by Hypothesis.
        root: the valid document.
        keys: limits the change to values of these keys. A large part, such as a machine, would
            get nearly all changes if there were no limit.
    """
    every = list(paths(root))
    if keys:
        key = draw(st.sampled_from(keys))
        every = [one for one in every if key in one] or every
    box = [copy.deepcopy(root)]
    *above, last = (0, *draw(st.sampled_from(every)))
    parent = reduce(getitem, above, box)
    draw(st.sampled_from(_WAYS))(draw, parent, last, root)
    return box[0]


def _replace(draw: Draw, parent: Any, key: Any, root: Any) -> None:
    """Generates a replacement: unusual values, the same as another type, or another part."""
    value = parent[key]
    others = [[value], *({name: value} for name in ("0", "items", "spec"))]
    if isinstance(value, list):
        others.append({str(number): one for number, one in enumerate(value)})
    elif isinstance(value, dict):
        others.append(list(value.values()))
    parts = st.sampled_from(list(paths(root))).map(lambda path: reduce(getitem, path, root))
    parent[key] = copy.deepcopy(draw(odd | odd | st.sampled_from(others) | parts))


def _perturb(draw: Draw, parent: Any, key: Any, _root: Any) -> None:
    value = parent[key]
    if isinstance(value, str):
        spot = draw(st.integers(0, len(value)))
        short = value.isdecimal() and value.isascii() and len(value) < _MAX_DIGITS
        ways = [value[:spot] + draw(texts) + value[spot:], value + draw(st.sampled_from(HOSTILE))]
        ways += [value[:spot], value[:spot] + value[spot + 1 :], value * 2, value.swapcase()]
        parent[key] = draw(st.sampled_from([*ways, int(value) if short else None]))
    elif isinstance(value, dict | list):
        parent[key] = draw(st.sampled_from((type(value)(), *(one for _, one in _items(value)))))
    else:
        number = value or 0
        ways = [number + 1, number - 1, -number, number * 1000, str(value), number + 0.5]
        parent[key] = draw(st.sampled_from(ways))


def _remove(_draw: Draw, parent: Any, key: Any, _root: Any) -> None:
    del parent[key]
    if parent == []:
        parent.append(None)


def _add(draw: Draw, parent: Any, key: Any, _root: Any) -> None:
    """Generates an addition: a repetition, a copy under another name, or an unusual value."""
    value = parent[key]
    if isinstance(parent, list) and draw(st.booleans()):
        parent += [value] * draw(st.sampled_from((1, 40)))
    elif isinstance(value, list):
        value.append(draw(odd))
    elif isinstance(value, dict):
        value[draw(st.sampled_from(_NAMES) | texts)] = draw(odd)
    elif isinstance(parent, dict):
        parent[f"{key}x"] = value


def _rename(draw: Draw, parent: Any, key: Any, _root: Any) -> None:
    if not isinstance(parent, dict):
        return
    new = draw(
        st.sampled_from((key[:-1], key.upper(), key + draw(st.sampled_from(HOSTILE)))) | texts
    )
    items = [(new if one == key else one, value) for one, value in parent.items()]
    parent.clear()
    parent.update(items)


_WAYS = (_replace, _replace, _replace, _perturb, _perturb, _remove, _add, _add, _rename)

POISON = "x\x1b]0;t\x07\x9b5m\x7f\u202e\u2066\u200b\u0600\U000e0041"
"""A terminal command, C1, DEL, direction marks, zero-width characters, a tag."""


@st.composite
def poisoned_documents(draw: Draw, root: Any) -> Any:
    """Generates a document with `POISON` in one of its texts or keys."""
    box = [copy.deepcopy(root)]
    texts_ = [one for one in paths(root) if isinstance(reduce(getitem, one, root), str)]
    keys = [one for one in paths(root) if one and isinstance(one[-1], str)]
    is_key = draw(st.booleans())
    *above, last = (0, *draw(st.sampled_from(keys if is_key else texts_)))
    parent = reduce(getitem, above, box)
    if is_key:
        parent[last + POISON] = parent.pop(last)
    else:
        parent[last] = draw(st.sampled_from((parent[last] + POISON, POISON)))
    return box[0]


_BYTES = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\x1b[31m", b"\xc2\x9b", b"\xf4\x90")
_HEADS = (b"\xef\xbb\xbf", b"\xff\xfe", b"---\n", b"%YAML 9.9\n---\n")
_BREAKS = (b"\r\n", b"\r", b"\x85", b"\n\n", b"\n\t")
_WHOLES = (b"", b"\n", b"\x00" * 64, b"[" * 5000, b"{" * 3000, b"- " * 500)


@st.composite
def damaged_files(draw: Draw, text: bytes, other: bytes) -> bytes:
    """Generates the bytes of a file with one change; parts may come from the file `other`."""
    spot = draw(st.integers(0, len(text)))
    rest = text[spot + draw(st.integers(0, 40)) :]
    lines = text.splitlines(keepends=True) or [b""]
    line = draw(st.integers(0, len(lines) - 1))
    between = st.one_of(
        st.sampled_from(_BYTES),
        st.binary(max_size=4),
        texts.map(lambda word: word.encode(errors="surrogatepass")),
    )
    return draw(
        st.one_of(
            st.just(b"".join((*lines[:line], *lines[line + 1 :]))),
            st.just(b"".join((*lines[: line + 1], *lines[line:]))),
            st.just(text[:spot] + rest),
            st.just(text[:spot]),
            between.map(lambda middle: text[:spot] + middle + rest),
            st.permutations(lines).map(b"".join),
            st.sampled_from(_HEADS).map(lambda head: head + text),
            st.sampled_from(_BREAKS).map(lambda end: text.replace(b"\n", end)),
            st.sampled_from((*_WHOLES, other)),
            st.integers(0, len(other)).map(lambda start: text[:spot] + other[start:]),
        )
    )


def serialize(value: Any, form: Form, *, ascii_only: bool = True) -> bytes:
    """Serializes a document, with only ASCII characters if `ascii_only`."""
    raws: list[str] = []

    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            return {str(key): plain(below) for key, below in part.items()}
        if isinstance(part, list | tuple):
            return [plain(below) for below in part]
        if isinstance(part, Raw):
            raws.append(str(part))
            return f"RAW{len(raws) - 1}RAW"
        return part

    if form == "yaml":
        made = yaml.dump(
            plain(value), Dumper=_Dumper, sort_keys=False, allow_unicode=not ascii_only
        )
    else:
        indent = 1 if form == "json" else None
        made = json.dumps(plain(value), indent=indent, ensure_ascii=ascii_only)
    made = re.sub('"?RAW([0-9]+)RAW"?', lambda match: raws[int(match[1])], made)
    return made.encode(errors="surrogatepass")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True
