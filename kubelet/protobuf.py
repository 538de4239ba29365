"""Protocol Buffers: messages as dictionaries, by the messages that a .proto file describes.

Only what the kubelet's interfaces need: proto3 with strings, bytes, booleans, integers, enums as
integers, messages, repeated fields and maps with string keys. A decoded message has the fields
that were sent, so read them with ``get``; fields that the description lacks are skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Message = dict[str, Any]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MORE = 0x80
"""The bit that a byte of a number has if more bytes follow."""
_INTEGERS = frozenset({"bool", "int32", "int64", "uint32", "uint64", "enum"})
_UNSIGNED = frozenset({"uint32", "uint64"})
_MESSAGE = re.compile(r"message (\w+) \{([^}]*)\}")
_FIELD = re.compile(r"(repeated )?(?:map<string, (\w+)>|(\w+)) (\w+) = (\d+);")


class ProtobufError(ValueError):
    """Bytes are not a message, or a message does not fit its description."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message; `kind` is that of an item if it is repeated, of a value in a map."""

    name: str
    number: int
    kind: str
    is_repeated: bool = False
    is_map: bool = False


class Schema:
    """The messages that a .proto file describes.

    Args:
        text: the file, with one field on a line.
    """

    def __init__(self, text: str) -> None:
        self._messages = {
            name: {one.number: one for one in _fields(body)}
            for name, body in _MESSAGE.findall(text)
        }
        self._by_name = {
            name: {one.name: one for one in fields.values()}
            for name, fields in self._messages.items()
        }

    def encode(self, kind: str, message: Mapping[str, Any]) -> bytes:
        """The bytes of a message of a kind.

        Raises:
            ProtobufError: the message has a field that the kind lacks.
        """
        out = bytearray()
        for name, value in message.items():
            field = self._by_name[kind].get(name)
            if field is None:
                raise ProtobufError(f"{kind} has no field {name}")
            for item in self._items(field, value):
                self._encode_item(out, field, item)
        return bytes(out)

    def _items(self, field: Field, value: Any) -> Iterator[Any]:
        if field.is_map:
            yield from value.items()
        elif field.is_repeated:
            yield from value
        elif value or field.kind in self._messages:
            yield value

    def _encode_item(self, out: bytearray, field: Field, item: Any) -> None:
        if field.kind in _INTEGERS and not field.is_map:
            _write_varint(out, field.number << 3 | _VARINT)
            _write_varint(out, int(item))
            return
        if field.is_map:
            key, value = item
            content = _entry(key, self._content(field.kind, value))
        else:
            content = self._content(field.kind, item)
        _write_varint(out, field.number << 3 | _BYTES)
        _write_varint(out, len(content))
        out += content

    def _content(self, kind: str, value: Any) -> bytes:
        if kind == "string":
            return str(value).encode()
        return bytes(value) if kind == "bytes" else self.encode(kind, value)

    def decode(self, kind: str, data: bytes) -> Message:
        """The message of a kind in bytes.

        Raises:
            ProtobufError: the bytes are not such a message.
        """
        message: Message = {}
        for number, value in _read_fields(data):
            field = self._messages[kind].get(number)
            if field is None:
                continue
            if field.is_map:
                entry = dict(_read_fields(self._value("bytes", value)))
                key = self._value("string", entry.get(1, b""))
                message.setdefault(field.name, {})[key] = self._value(field.kind, entry.get(2, b""))
            elif field.is_repeated:
                items = _unpack(value) if field.kind in _INTEGERS else [value]
                values = [self._value(field.kind, item) for item in items]
                message.setdefault(field.name, []).extend(values)
            else:
                message[field.name] = self._value(field.kind, value)
        return message

    def _value(self, kind: str, value: Any) -> Any:
        if kind in _INTEGERS:
            if not isinstance(value, int):
                raise ProtobufError(f"a {kind} is sent as bytes")
            if kind == "bool":
                return bool(value)
            return value if kind in _UNSIGNED else _to_signed(value)
        if not isinstance(value, bytes):
            raise ProtobufError(f"a {kind} is sent as a number")
        if kind == "bytes":
            return value
        if kind != "string":
            return self.decode(kind, value)
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise ProtobufError(f"a string is no UTF-8: {error}") from None


def _fields(body: str) -> Iterator[Field]:
    for repeated, of_map, kind, name, number in _FIELD.findall(body):
        yield Field(name, int(number), of_map or kind, bool(repeated), bool(of_map))


def _entry(key: str, value: bytes) -> bytes:
    out = bytearray()
    for number, content in ((1, key.encode()), (2, value)):
        _write_varint(out, number << 3 | _BYTES)
        _write_varint(out, len(content))
        out += content
    return bytes(out)


def _unpack(value: Any) -> Iterator[int]:
    """The integers of a repeated field, which may be packed into one item."""
    if isinstance(value, int):
        yield value
        return
    at = 0
    while at < len(value):
        item, at = _read_varint(value, at)
        yield item


def _to_signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _write_varint(out: bytearray, value: int) -> None:
    value &= (1 << 64) - 1
    while value >= _MORE:
        out.append(value % _MORE | _MORE)
        value >>= 7
    out.append(value)


def _read_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value: Any
            value, at = _read_varint(data, at)
        else:
            size = {_FIXED64: 8, _FIXED32: 4}.get(wire)
            if size is None:
                if wire != _BYTES:
                    raise ProtobufError(f"unknown wire type {wire}")
                size, at = _read_varint(data, at)
            value, at = data[at : at + size], at + size
            if at > len(data):
                raise ProtobufError("the message is cut off")
        if wire in (_VARINT, _BYTES):  # no field has a fixed size
            yield number, value


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise ProtobufError("the message is cut off")
        byte = data[at]
        value |= byte % _MORE << shift
        at, shift = at + 1, shift + 7
        if byte < _MORE:
            return value, at
