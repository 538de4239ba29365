"""YAML documents that know the line of each of their values.

Everything that people write by hand (a machine profile, a table of cases) is read here, so that
every error can name the file, the line and the field. The language is the unambiguous part of
YAML: ``true``, ``false``, ``null``, decimal numbers, strings, lists and mappings. Tags, duplicate
keys and excessive depth are errors, and so are aliases unless allowed.
"""

import difflib
import os
import re
import types
import typing
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec
import yaml

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # pragma: no cover - PyYAML built without libyaml
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

PathTuple = tuple[str | int, ...]
_T = TypeVar("_T")

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 40
MAX_VALUES = 100_000
"""Maximum number of values in a document with its aliases expanded."""


class DocumentError(ValueError):
    """A document is invalid; says where, why, and how to fix it.

    Attributes:
        file: the file's name as the user gave it, or ``<text>``.
        line: line number from 1; 0 if the error is not about a line.
        field: the field as a dotted path (``nodes[2].memory``), or ``""``.
        message: what is wrong.
        fix: how to fix it, or ``""``.
    """

    def __init__(self, file: str, line: int, field: str, message: str, fix: str = "") -> None:
        where = f"{file}:{line}" if line else file
        about = f"{field}: " if field else ""
        super().__init__(f"{where}: {about}{message}" + (f" ({fix})" if fix else ""))
        self.file = file
        self.line = line
        self.field = field
        self.message = message
        self.fix = fix


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

_SCALARS: dict[str, Any] = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": float,
    "tag:yaml.org,2002:bool": lambda text: text == "true",
    "tag:yaml.org,2002:null": lambda _: None,
}


class Document:
    """A parsed document.

    Attributes:
        file: the name to use in messages.
        data: the content as dicts, lists, str, int, float, bool and None.
    """

    __slots__ = ("_root", "data", "file")

    def __init__(self, file: str, root: yaml.Node | None, data: Any) -> None:
        self.file = file
        self.data = data
        self._root = root

    def line(self, path: PathTuple = ()) -> int:
        """The line (from 1) of the value at ``path``, or of its nearest existing parent.

        For a value in a mapping, this is the line of its key.
        """
        node = self._root
        if node is None:
            return 1
        line = node.start_mark.line + 1
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            mark, node = found
            line = mark.line + 1
        return line

    def error(self, path: PathTuple, message: str, fix: str = "") -> DocumentError:
        """The error about the value at ``path``, ready to raise."""
        return DocumentError(self.file, self.line(path), dotted(path), message, fix)


def load(
    source: str | os.PathLike[str], *, file: str | None = None, aliases: bool = False
) -> Document:
    """Parses YAML from a file or from text.

    Args:
        source: a ``Path`` to read, or the text itself as a ``str``.
        file: the name to use in messages instead of the path.
        aliases: allow aliases and merge keys (``<<``), as other YAML parsers do.

    Raises:
        DocumentError: the file is unreadable, too large or too deep, or has bad syntax, an alias, a
            duplicate or non-string key, or an unknown tag.
    """
    if isinstance(source, str):
        name, text = file or "<text>", source
    else:
        name = file or os.fspath(source)
        text = _read(name, Path(source))
    if len(text) > MAX_BYTES:
        raise DocumentError(name, 0, "", f"longer than {MAX_BYTES} characters", "split it")
    try:
        _screen(name, text, aliases=aliases)
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 0
        raise DocumentError(name, line, "", f"not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise DocumentError(name, 0, "", f"not YAML: {' '.join(str(error).split())}") from None
    if root is None:
        return Document(name, None, None)
    return Document(name, root, _Constructor(name, merges=aliases).construct(root, ()))


def convert(document: Document, type_: type[_T]) -> _T:
    """The document as a typed value (strict: no strings for numbers).

    Raises:
        DocumentError: the document does not fit the type.
    """
    try:
        return msgspec.convert(document.data, type_)
    except msgspec.ValidationError as error:
        message, path, expected = _locate(str(error), document.data, type_)
        fix = ""
        unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message)
        if unknown:
            message = f"unknown key {unknown[1]!r}"
            fix = _nearest(unknown[1], expected)
            path = (*path, unknown[1])
        missing = re.fullmatch(r"Object missing required field `(.*)`", message)
        if missing:
            message, fix = f"missing key {missing[1]!r}", f"add {missing[1]!r}"
        raise document.error(path, message[0].lower() + message[1:], fix) from None


def dotted(path: PathTuple) -> str:
    """A path as people write it: ``nodes[2].memory``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def _screen(name: str, text: str, *, aliases: bool) -> None:
    """Rejects aliases and depth while parsing events, because composing nodes recurses in C."""
    loader = _Loader(text)
    depth = 0
    try:
        while loader.check_event():
            event: Any = loader.get_event()
            line = event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent) and not aliases:
                raise DocumentError(
                    name, line, "", "YAML aliases are not allowed", "repeat the value"
                )
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    message = f"nested deeper than {MAX_DEPTH} levels"
                    raise DocumentError(name, line, "", message, "flatten it")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    finally:
        loader.dispose()


def _read(name: str, path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DocumentError(name, 0, "", f"larger than {MAX_BYTES} bytes", "split it")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DocumentError(name, 0, "", f"cannot read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DocumentError(name, line, "", "not UTF-8 text", "save it as UTF-8") from None


class _Constructor:
    """Turns the node graph into plain values, up to a sane size."""

    def __init__(self, file: str, *, merges: bool) -> None:
        self._file = file
        self._merges = merges
        self._values = 0

    def construct(self, node: yaml.Node, path: PathTuple) -> Any:
        self._values += 1
        if len(path) > MAX_DEPTH or self._values > MAX_VALUES:
            raise self._error(node, path[:1], "aliases make it too large", "use fewer aliases")
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self.construct(item, (*path, i)) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
            try:
                return _SCALARS[node.tag](node.value)
            except ValueError:
                raise self._error(node, path, f"not a number: {node.value[:20]!r}") from None
        raise self._error(node, path, f"YAML tag {node.tag} is not allowed", "remove the tag")

    def _mapping(self, node: yaml.MappingNode, path: PathTuple) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(key_node, path, "keys must be strings", "quote the key")
            key = key_node.value
            if key == "<<" and self._merges:
                merged |= self._merged(value_node, path)
                continue
            if key in result:
                raise self._error(
                    key_node, (*path, key), f"duplicate key {key!r}", "remove one of the two"
                )
            result[key] = self.construct(value_node, (*path, key))
        return merged | result

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
        line = node.start_mark.line + 1
        return DocumentError(self._file, line, dotted(path), message, fix)


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Mark, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return key.start_mark, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    return None


def _locate(text: str, data: Any, type_: Any) -> tuple[str, PathTuple, Any]:
    """Splits msgspec's message into the text, the path, and the type expected there.

    msgspec writes ``$.nodes[0].memory``, but ``[...]`` for any key of a mapping; the key is found
    by trying which of the mapping's values does not fit.
    """
    match = re.fullmatch(r"(.*?) - at `(?:key in )?\$(.*)`", text, re.DOTALL)
    if match is None:
        return text, (), type_
    path: list[str | int] = []
    for name, index, any_key in re.findall(r"\.([^.\[]+)|\[(\d+)\]|(\[\.\.\.\])", match[2]):
        step: str | int | None = int(index) if index else name
        if any_key:
            step = _misfit(data, type_)
        if step is None:
            break
        type_ = _type_below(type_, step)
        path.append(step)
        data = data[step]
    return match[1], tuple(path), type_


def _misfit(data: Any, type_: Any) -> str | int | None:
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        try:
            msgspec.convert(value, _type_below(type_, key))
        except msgspec.ValidationError:
            return typing.cast("str | int", key)
    return None


def _alternatives(type_: Any) -> tuple[Any, ...]:
    return get_args(type_) if get_origin(type_) in (Union, types.UnionType) else (type_,)


def _type_below(type_: Any, step: str | int) -> Any:
    for option in _alternatives(type_):
        origin, args = get_origin(option), get_args(option)
        if isinstance(option, type) and issubclass(option, msgspec.Struct):
            for field in msgspec.structs.fields(option):
                if field.encode_name == step:
                    return field.type
        elif origin is typing.Annotated:
            return _type_below(args[0], step)
        elif origin is not None and origin is not typing.Literal and args:
            return args[1] if len(args) > 1 and isinstance(step, str) else args[0]
    return Any


def _nearest(name: str, type_: Any) -> str:
    known = [
        field.encode_name
        for option in _alternatives(type_)
        if isinstance(option, type) and issubclass(option, msgspec.Struct)
        for field in msgspec.structs.fields(option)
    ]
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known keys: {', '.join(known)}" if known else "remove it"
