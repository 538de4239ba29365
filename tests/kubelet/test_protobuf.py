"""Messages are encoded as Protocol Buffers say, and decoded whoever encoded them."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numaproof.kubelet import device_plugins, pod_resources, runtime
from numaproof.kubelet.protobuf import Message, ProtobufError, Schema

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from numaproof.kubelet.protobuf import Field

SCHEMA = Schema(
    """
    message Inner {
      int64 number = 1;
    }
    message Every {
      string text = 1;
      bytes raw = 2;
      bool flag = 3;
      int64 number = 4;
      repeated int64 numbers = 5;
      repeated string texts = 6;
      map<string, string> labels = 7;
      Inner inner = 8;
      repeated Inner inners = 9;
      map<string, Inner> by_name = 10;
      enum choice = 16;
      uint64 size = 17;
    }
    """
)
MINUS_ONE = "ff ff ff ff ff ff ff ff ff 01"


@pytest.mark.parametrize(
    ("message", "encoded"),
    [
        ({}, ""),
        ({"text": "testing"}, "0a 07 74 65 73 74 69 6e 67"),
        ({"text": "é"}, "0a 02 c3 a9"),
        ({"raw": b"\x00\xff"}, "12 02 00 ff"),
        ({"flag": True}, "18 01"),
        ({"number": 150}, "20 96 01"),
        ({"number": -1}, f"20 {MINUS_ONE}"),
        ({"number": -(1 << 63)}, "20 80 80 80 80 80 80 80 80 80 01"),
        ({"size": (1 << 64) - 1}, f"88 01 {MINUS_ONE}"),
        ({"numbers": [1, 0, -1]}, f"28 01 28 00 28 {MINUS_ONE}"),
        ({"texts": ["a", ""]}, "32 01 61 32 00"),
        ({"labels": {"a": "b"}}, "3a 06 0a 01 61 12 01 62"),
        ({"labels": {"": ""}}, "3a 04 0a 00 12 00"),
        ({"inner": {"number": 150}}, "42 03 08 96 01"),
        ({"inner": {}}, "42 00"),
        ({"inners": [{}, {"number": 1}]}, "4a 00 4a 02 08 01"),
        ({"by_name": {"a": {"number": 1}}}, "52 07 0a 01 61 12 02 08 01"),
        ({"choice": 2}, "80 01 02"),
    ],
    ids=str,
)
def test_a_message_has_a_known_encoding(message: Message, encoded: str) -> None:
    assert SCHEMA.encode("Every", message).hex(" ") == encoded
    assert SCHEMA.decode("Every", bytes.fromhex(encoded)) == message


def test_default_values_are_not_sent() -> None:
    message = {"text": "", "raw": b"", "flag": False, "number": 0, "choice": 0, "labels": {}}
    assert SCHEMA.encode("Every", message | {"numbers": [], "inners": []}) == b""


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        (f"2a 0d 01 96 01 {MINUS_ONE}", {"numbers": [1, 150, -1]}),
        ("2a 01 01 28 02 2a 01 03", {"numbers": [1, 2, 3]}),
        ("2a 00", {"numbers": []}),
        ("0a 01 61 0a 01 62", {"text": "b"}),
        ("3a 03 0a 01 61", {"labels": {"a": ""}}),
        ("3a 03 12 01 62", {"labels": {"": "b"}}),
        ("52 03 0a 01 61", {"by_name": {"a": {}}}),
        ("18 00 20 00", {"flag": False, "number": 0}),
    ],
)
def test_other_valid_encodings_are_understood(encoded: str, message: Message) -> None:
    """Packed numbers, a field that comes twice, entries of maps without a key or a value."""
    assert SCHEMA.decode("Every", bytes.fromhex(encoded)) == message


@pytest.mark.parametrize(
    "unknown",
    ["a0 06 96 01", "a1 06 01 02 03 04 05 06 07 08", "a2 06 02 ff ff", "a5 06 01 02 03 04"],
    ids=["varint", "fixed64", "bytes", "fixed32"],
)
def test_unknown_fields_are_skipped(unknown: str) -> None:
    encoded = bytes.fromhex(f"18 01 {unknown} 20 01")
    assert SCHEMA.decode("Every", encoded) == {"flag": True, "number": 1}


def test_a_field_of_a_fixed_size_is_an_unknown_one() -> None:
    assert SCHEMA.decode("Every", bytes.fromhex("0d 61 61 61 61 18 01")) == {"flag": True}


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        ("20", "the message is cut off"),
        ("20 96", "the message is cut off"),
        ("0a 07 74", "the message is cut off"),
        ("a1 06 00", "the message is cut off"),
        ("2a 01 96", "the message is cut off"),
        ("42 01 08", "the message is cut off"),
        ("23 24", "unknown wire type 3"),
        ("08 01", "a string is sent as a number"),
        ("10 01", "a bytes is sent as a number"),
        ("40 01", "a Inner is sent as a number"),
        ("38 01", "a bytes is sent as a number"),
        ("3a 02 08 01", "a string is sent as a number"),
        ("22 01 01", "a int64 is sent as bytes"),
        ("0a 01 ff", "a string is no UTF-8"),
        ("3a 03 0a 01 ff", "a string is no UTF-8"),
    ],
)
def test_bytes_that_are_no_message_are_refused(encoded: str, message: str) -> None:
    with pytest.raises(ProtobufError, match=message):
        SCHEMA.decode("Every", bytes.fromhex(encoded))


def test_a_field_that_the_description_lacks_cannot_be_sent() -> None:
    with pytest.raises(ProtobufError, match="Every has no field colour"):
        SCHEMA.encode("Every", {"colour": "red"})


RUNTIME = Schema((resources.files("numaproof.kubelet") / "runtime.proto").read_text("utf-8"))
NUMBER = st.integers(-(1 << 63), (1 << 63) - 1)
PLAIN: dict[str, SearchStrategy[Any]] = {
    "string": st.text(max_size=4),
    "bytes": st.binary(max_size=4),
    "bool": st.booleans(),
    "uint32": st.integers(0, (1 << 32) - 1),
    "uint64": st.integers(0, (1 << 64) - 1),
}
"""Other kinds that aren't messages are signed numbers."""


@cache
def messages(kind: str) -> SearchStrategy[Message]:
    """Messages of a kind, each with some of its fields."""
    return st.fixed_dictionaries(
        {}, optional={name: values(field) for name, field in RUNTIME._by_name[kind].items()}
    )


def values(field: Field) -> SearchStrategy[Any]:
    is_message = field.kind in RUNTIME._by_name
    one = messages(field.kind) if is_message else PLAIN.get(field.kind, NUMBER)
    if field.is_map:
        return st.dictionaries(PLAIN["string"], one, max_size=2)
    return st.lists(one, max_size=2) if field.is_repeated else one


# A busy machine is no reason to fail.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of([st.tuples(st.just(kind), messages(kind)) for kind in RUNTIME._by_name]))
def test_a_message_of_the_runtime_survives_the_way(sent: tuple[str, Message]) -> None:
    """What arrives is what was sent; fields with a default value may be left out."""
    kind, message = sent
    encoded = RUNTIME.encode(kind, message)
    arrived = RUNTIME.decode(kind, encoded)
    assert full(kind, arrived) == full(kind, message)
    assert RUNTIME.encode(kind, arrived) == encoded


def full(kind: str, message: Message) -> Message:
    """The message with every field that it could have, except for messages that it lacks."""
    made: Message = {}
    for name, field in RUNTIME._by_name[kind].items():
        of_messages = field.kind in RUNTIME._by_name
        if field.is_repeated:
            made[name] = [
                full(field.kind, one) if of_messages else one for one in message.get(name, ())
            ]
        elif of_messages:
            made[name] = full(field.kind, message[name]) if name in message else None
        else:
            made[name] = message.get(name) or None
    return made


@pytest.mark.parametrize("schema", [runtime.SCHEMA, device_plugins.SCHEMA, pod_resources.SCHEMA])
def test_every_kind_of_field_is_described(schema: Schema) -> None:
    known = {*schema._by_name, "string", "bytes", "bool", "enum"}
    known |= {"int32", "int64", "uint32", "uint64"}
    kinds = {field.kind for fields in schema._by_name.values() for field in fields.values()}
    assert kinds <= known
