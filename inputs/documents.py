"""YAML documents that know the line of each of their values.

Everything that people write by hand (a machine profile, a table of cases) is read here, so that
every error can name the file, the line and the field. The language is the unambiguous part of
YAML: ``true``, ``false``, ``null``, decimal numbers, strings, lists and mappings. Tags, duplicate
keys, numbers beyond 64 bits and excessive depth or size are errors, and so are aliases unless
allowed.
"""

import math
import os
import re
from typing import Any

import yaml

from numaproof.inputs import door
from numaproof.inputs.errors import DocumentError, PathTuple, dotted
from numaproof.inputs.plurals import plural

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # pragma: no cover - PyYAML built without libyaml
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

__all__ = ["MAX_BYTES", "MAX_VALUES", "Document", "DocumentError", "PathTuple", "dotted", "load"]

MAX_BYTES = door.DOCUMENT_BYTES
"""Maximum size of a file of documents, and of a document's texts with its aliases expanded."""

MAX_DEPTH = 40
MAX_VALUES = 100_000
"""Maximum number of values in a file of documents, with their aliases expanded."""

_SMALLEST, _LARGEST = -(1 << 63), (1 << 64) - 1
_MOST_DIGITS = 20
_MOST_VALUES_SHOWN = f"{MAX_VALUES:,} values"


class _Loader(_SafeLoader):
    """The safe loader with the implicit types of JSON only (no ``on``, no ``1:30``)."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as the base class has it


for _tag, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("null", r"~|null|", ["~", "n", ""]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?", "-+0123456789"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first)
    )


def _integer(text: str) -> int:
    # Whoever reads a number, in whatever language, has at most 64 bits for it.
    if len(text.lstrip("+-")) > _MOST_DIGITS or not _SMALLEST <= (number := int(text)) <= _LARGEST:
        raise OverflowError
    return number


def _fraction(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise OverflowError
    return number


_SCALARS: dict[str, Any] = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:int": _integer,
    "tag:yaml.org,2002:float": _fraction,
    "tag:yaml.org,2002:bool": lambda text: text == "true",
    "tag:yaml.org,2002:null": lambda _: None,
}


class Document:
    """A parsed document.

    Attributes:
        file: the name to use in messages.
        data: the content as dicts, lists, str, int, float, bool and None.
        values: how many values there are in it, with its aliases expanded.
    """

    __slots__ = ("_before", "_children", "_root", "data", "file", "values")

    def __init__(
        self, file: str, root: yaml.Node | None, data: Any, values: int = 0, before: int = 0
    ) -> None:
        """Keeps what `load` has read; `before` lines of the file precede the document."""
        self.file = file
        self.data = data
        self.values = values
        self._root = root
        self._before = before
        self._children: dict[int, dict[str, tuple[yaml.Mark, yaml.Node]]] = {}

    def line(self, path: PathTuple = ()) -> int:
        """The line (from 1) of the value at ``path``, or of its nearest existing parent.

        For a value in a mapping, this is the line of its key.
        """
        node = self._root
        if node is None:
            return self._before + 1
        line = node.start_mark.line
        for step in path:
            found = self._child(node, step)
            if found is None:
                break
            mark, node = found
            line = mark.line
        return self._before + line + 1

    def _child(self, node: yaml.Node, step: str | int) -> tuple[yaml.Mark, yaml.Node] | None:
        if isinstance(node, yaml.MappingNode):
            # Thousands of findings can be about the keys of one mapping.
            keys = self._children.get(id(node))
            if keys is None:
                pairs = reversed(node.value)
                keys = {key.value: (key.start_mark, value) for key, value in pairs}
                self._children[id(node)] = keys
            return keys.get(str(step))
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            return node.value[step].start_mark, node.value[step]
        return None

    def below(self, path: PathTuple) -> "Document":
        """The value at ``path``, which exists, as a document with the line numbers of the file."""
        node, data = self._root, self.data
        for step in path:
            found = self._child(node, step) if node is not None else None
            node, data = found and found[1], data[step]
        return Document(self.file, node, data, self.values, self._before)

    def error(self, path: PathTuple, message: str, fix: str = "") -> DocumentError:
        """The error about the value at ``path``, ready to raise."""
        return DocumentError(self.file, self.line(path), dotted(path), message, fix)


def load(
    source: str | os.PathLike[str],
    *,
    file: str | None = None,
    aliases: bool = False,
    before: int = 0,
) -> Document:
    """Parses YAML from a file or from text.

    Args:
        source: a ``Path`` to read, or the text itself as a ``str``.
        file: the name to use in messages instead of the path.
        aliases: allow aliases and merge keys (``<<``), as other YAML parsers do.
        before: number of the file's lines that precede the text.

    Raises:
        DocumentError: the file is unreadable, too large or too deep, or has bad syntax, an alias, a
            duplicate or non-string key, or an unknown tag.
    """
    if isinstance(source, str):
        name, text = file or "<text>", source
        if len(text) > MAX_BYTES:
            raise DocumentError(name, 0, "", f"longer than {MAX_BYTES:,} characters", "split it")
    else:
        name = file or os.fspath(source)
        text = door.read_text(source, name=name, most=MAX_BYTES)
    try:
        _screen(name, text, before, aliases=aliases)
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = before + mark.line + 1 if mark is not None else 0
        raise DocumentError(name, line, "", f"not YAML: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        line = before + text.encode()[: error.position].count(b"\n") + 1
        raise DocumentError(name, line, "", f"not YAML: {error.reason}") from None
    if root is None:
        return Document(name, None, None, before=before)
    constructor = _Constructor(name, before, merges=aliases)
    data = constructor.construct(root, ())
    return Document(name, root, data, constructor.values, before)


def _screen(name: str, text: str, before: int, *, aliases: bool) -> None:
    """Rejects aliases, depth and numbers of values while parsing events.

    Composing nodes recurses in C, and takes ten times the memory.
    """
    loader = _Loader(text)
    depth = values = 0
    try:
        while loader.check_event():
            event: Any = loader.get_event()
            line = before + event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent) and not aliases:
                raise DocumentError(
                    name, line, "", "YAML aliases are not allowed", "repeat the value"
                )
            values += isinstance(event, yaml.NodeEvent)
            if values > 2 * MAX_VALUES:  # a value and its key
                raise DocumentError(name, line, "", f"more than {_MOST_VALUES_SHOWN}", "split it")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    message = f"nested deeper than {MAX_DEPTH} levels"
                    raise DocumentError(name, line, "", message, "flatten it")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    finally:
        loader.dispose()


class _Constructor:
    """Turns the node graph into plain values, up to a sane size."""

    def __init__(self, file: str, before: int, *, merges: bool) -> None:
        self._file = file
        self._before = before
        self._merges = merges
        self._characters = 0
        self.values = 0

    def construct(self, node: yaml.Node, path: PathTuple) -> Any:
        self.values += 1
        if len(path) > MAX_DEPTH or self.values > MAX_VALUES or self._characters > MAX_BYTES:
            what = "aliases make it too large" if self._merges else f"more than {MAX_VALUES} values"
            raise self._error(node, path[:1], what, "use fewer")
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self.construct(item, (*path, i)) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
            return self._scalar(node, path)
        raise self._error(node, path, f"YAML tag {node.tag} is not allowed", "remove the tag")

    def _scalar(self, node: yaml.ScalarNode, path: PathTuple) -> Any:
        self._characters += len(node.value)
        try:
            return _SCALARS[node.tag](node.value)
        except OverflowError:
            shown = f"{node.value[:20]}... of {plural(len(node.value), 'character')}"
            message = f"the number {shown} does not fit in 64 bits"
            raise self._error(node, path, message, "quote it if it is text") from None
        except ValueError:
            raise self._error(node, path, f"not a number: {node.value[:20]!r}") from None

    def _mapping(self, node: yaml.MappingNode, path: PathTuple) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(key_node, path, "keys must be strings", "quote the key")
            key = key_node.value
            self._characters += len(key)
            if key == "<<" and self._merges:
                merged |= self._merged(value_node, path)
                continue
            if key in result:
                raise self._duplicate(node, key_node, path)
            result[key] = self.construct(value_node, (*path, key))
        return merged | result

    def _duplicate(
        self, node: yaml.MappingNode, again: yaml.ScalarNode, path: PathTuple
    ) -> DocumentError:
        first = next(key for key, _ in node.value if key.value == again.value)
        line = self._before + first.start_mark.line + 1
        message = f"duplicate key {again.value!r}, first in line {line}"
        return self._error(again, (*path, again.value), message, "remove one of the two")

    def _merged(self, node: yaml.Node, path: PathTuple) -> dict[str, Any]:
        """The value of a merge key: a mapping, or several of which the first wins."""
        value = self.construct(node, (*path, "<<"))
        result: dict[str, Any] = {}
        for mapping in reversed(value if isinstance(value, list) else [value]):
            if not isinstance(mapping, dict):
                raise self._error(
                    node, path, "only mappings can be merged", "use a mapping's anchor"
                )
            result |= mapping
        return result

    def _error(
        self, node: yaml.Node, path: PathTuple, message: str, fix: str = ""
    ) -> DocumentError:
        line = self._before + node.start_mark.line + 1
        return DocumentError(self._file, line, dotted(path), message, fix)
