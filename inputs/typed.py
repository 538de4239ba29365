"""Converts documents to typed values; errors name the file, line and field."""

import difflib
import re
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from numaproof.inputs.documents import Document
from numaproof.inputs.errors import PathTuple

_T = TypeVar("_T")


def convert(document: Document, type_: type[_T]) -> _T:
    """Converts a document to a typed value (strictly: strings are not numbers).

    Raises:
        DocumentError: the document does not match the type.
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
        words = _words(expected)
        if message.startswith("Invalid enum value") and words:
            fix = f"use one of: {', '.join(words)}"
        described = _description(expected)
        if message.startswith("Expected `str` matching regex") and described:
            message = f"Expected {described}"
        missing = re.fullmatch(r"Object missing required field `(.*)`", message)
        if missing:
            message, fix = f"missing key {missing[1]!r}", f"add {missing[1]!r}"
        raise document.error(path, message[0].lower() + message[1:], fix) from None


def _locate(text: str, data: Any, type_: Any) -> tuple[str, PathTuple, Any]:
    """Splits msgspec's message into the text, the path, and the type expected there.

    msgspec writes ``$.nodes[0].memory``, but ``[...]`` for keys of a mapping. To find the key, the
    values of the mapping are tried until one does not match.
    """
    match = re.fullmatch(r"(.*?) - at (`key` in )?`\$(.*)`", text, re.DOTALL)
    if match is None:
        return text, (), type_
    path: list[str | int] = []
    for name, index, any_key in re.findall(r"\.([^.\[]+)|\[(\d+)\]|(\[\.\.\.\])", match[3]):
        step: str | int | None = int(index) if index else name
        if any_key:
            step = _misfit(data, type_)
        if step is None:
            break
        type_ = _type_below(type_, step)
        path.append(step)
        data = data[step]
    if match[2]:
        type_ = _type_of_keys(type_)
        path += [key for key in data if not _fits(key, type_)][:1]
    return match[1], tuple(path), type_


def _misfit(data: Any, type_: Any) -> str | int | None:
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        if not _fits(value, _type_below(type_, key)):
            return typing.cast("str | int", key)
    return None


def _fits(value: Any, type_: Any) -> bool:
    try:
        msgspec.convert({"value": value}, _holder(type_))
    except msgspec.ValidationError:
        return False
    return True


@cache
def _holder(type_: Any) -> type[msgspec.Struct]:
    """Returns a structure with a single field of the given type.

    Avoids a crash in msgspec 0.22: for types other than structures, it drops one reference too many
    to its description of a union of a tuple and a string with a pattern.
    """
    return msgspec.defstruct("Holder", [("value", type_)])


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
        elif not isinstance(origin, type):
            continue
        elif issubclass(origin, Mapping) and isinstance(step, str):
            return args[1]
        elif issubclass(origin, Sequence) and isinstance(step, int):
            of_fixed_length = len(args) > 1 and args[1] is not ...
            return args[step if of_fixed_length else 0]
    return Any


def _description(type_: Any) -> str:
    """Returns the description of a string with a pattern, if its type has one."""
    options = (one for one in _alternatives(type_) if get_origin(one) is typing.Annotated)
    metas = (meta for one in options for meta in one.__metadata__)
    found = (getattr(meta, "description", None) for meta in metas)
    return next(filter(None, found), "")


def _words(type_: Any) -> list[str]:
    options = (one for one in _alternatives(type_) if get_origin(one) is typing.Literal)
    return [str(word) for one in options for word in get_args(one)]


def _type_of_keys(type_: Any) -> Any:
    return next((get_args(one)[0] for one in _alternatives(type_) if get_origin(one) is dict), Any)


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
