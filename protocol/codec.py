"""Converts messages to and from JSON Lines, one message per line.

Decoding is strict. Every failure is a `ProtocolError` with a message for the implementation's
author.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from numaproof.protocol import json_problems, messages
from numaproof.protocol.names import unknown
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.sets import CPUSet, NUMASet

LONGEST_LINE = 64 * 1024 * 1024
"""Maximum length of a line in bytes, including the line break."""

LONGEST_ANSWER = 16 * 1024 * 1024
"""Maximum length of a response in bytes. The largest machine needs a third of it."""

LONGEST_REASON = 1024 * 1024
"""Maximum length in bytes of any response except `ok`, and of the response to `hello`."""

MAX_LEVELS = 200
"""Maximum nesting of lists and objects in a line.

No message comes near a tenth of it. Python's own limit is about a thousand and varies by version.
"""

MAX_CPUS = 8192
MAX_NUMA_ID = 1023
"""Linux's limits on CPU and NUMA node ids."""

_MAX_SHOWN = 80
"""Maximum number of characters of a list to include in an error."""

T = TypeVar("T")

_ANSWER_KINDS = ("ok", "refused", "unsupported", "fault")
_NO_RESULTS: dict[str, type[messages.Unsupported | messages.Fault]] = {
    "unsupported": messages.Unsupported,
    "fault": messages.Fault,
}
_NO_RESULT_KINDS: dict[type, str] = {kind: name for name, kind in _NO_RESULTS.items()}


class ProtocolError(Exception):
    """A line violates the protocol."""


class Request(messages.Strict, frozen=True):
    """A numbered request whose arguments have not been decoded yet."""

    id: int
    op: str
    args: msgspec.Raw


class _Response(messages.Strict, frozen=True):
    id: int
    ok: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    refused: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    unsupported: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    fault: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def encode_hook(value: object) -> object:
    """Encodes the set types for msgspec."""
    if isinstance(value, CPUSet):
        return str(value)
    if isinstance(value, NUMASet):
        return list(value)
    raise NotImplementedError(f"no JSON form for {type(value).__name__}")


def decode_hook(kind: type, value: object) -> object:
    """Decodes the set types for msgspec.

    Raises:
        ValueError: the value is malformed; msgspec adds the path.
    """
    if kind is CPUSet:
        if not isinstance(value, str):
            raise ValueError("Expected a CPU set: a string in the Linux list format")
        return CPUSet.parse(value, below=MAX_CPUS)
    if kind is NUMASet:
        if not isinstance(value, list) or not all(type(node) is int for node in value):
            raise ValueError("Expected a NUMA set: a sorted list of node ids")
        if any(node > MAX_NUMA_ID for node in value):
            raise ValueError(f"NUMA node {max(value)} is larger than {MAX_NUMA_ID}")
        made = NUMASet(value)
        if list(made) != value:
            text = str(value)
            shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
            raise ValueError(f"NUMA set {shown} is not sorted or repeats an id")
        return made
    raise NotImplementedError(f"the protocol has no {kind.__name__}")


_encoder = msgspec.json.Encoder(enc_hook=encode_hook)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, dec_hook=decode_hook)


def encode(message: object) -> bytes:
    """Returns the message as one line of JSON with no line break.

    Bytes that are not valid UTF-8, as in some file names and arguments, are escaped.
    """
    try:
        return _encoder.encode(message)
    except UnicodeEncodeError:
        return _encoder.encode(_encodable(to_plain(message)))


def _encodable(value: Any) -> Any:
    """Replaces surrogates, which UTF-8 cannot encode, with escapes."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(one) for one in value]
    return value


def to_plain(message: object) -> Any:
    """Returns the message as plain JSON values (dictionaries, lists, strings, numbers)."""
    return msgspec.to_builtins(message, enc_hook=encode_hook, str_keys=True)


def from_plain(value: object, kind: type[T]) -> T:
    """Converts plain JSON values to a message of type `kind`.

    Raises:
        ProtocolError: the values do not match `kind`.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        raise ProtocolError(str(error)) from None


def decode(line: bytes | str | msgspec.Raw, kind: type[T]) -> T:
    """Decodes a line into a message of type `kind`.

    Raises:
        ProtocolError: the line is not JSON, is nested too deeply, or does not match `kind`.
    """
    if not isinstance(line, msgspec.Raw) and nests_deeply(line):
        raise ProtocolError(f"JSON is nested deeper than {MAX_LEVELS} levels")
    try:
        return cast("T", _decoder(cast("Any", kind)).decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(str(error)) from None
    except RecursionError:
        raise ProtocolError("JSON is nested too deeply") from None


def decode_any(text: bytes | str) -> Any:
    """Decodes any JSON into plain values.

    Raises:
        ProtocolError: the text is not JSON, or is nested too deeply.
    """
    return decode(text, cast("type", Any))


_TEXTS = re.compile(rb'"[^"]*"')
_ALL_BUT_BRACKETS = bytes({*range(256)} - {*b'[]{}"'})


def nests_deeply(text: bytes | str) -> bool:
    """Whether JSON nests lists and objects deeper than `MAX_LEVELS`."""
    line = text.encode(errors="replace") if isinstance(text, str) else text
    if line.count(b"[") + line.count(b"{") <= MAX_LEVELS:
        return False
    # Without escapes, every quotation mark starts or ends a string.
    plain = line.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in line else line
    quoted = plain.translate(None, _ALL_BUT_BRACKETS).replace(b'""', b"")
    left = _TEXTS.sub(b"", quoted)
    for _ in range(MAX_LEVELS):
        # Each pass removes the innermost level.
        left, before = left.replace(b"[]", b"").replace(b"{}", b""), len(left)
        if not left or len(left) == before:  # all levels removed, or not JSON
            return False
    return bool(left)


def _require_unique_keys(line: bytes) -> None:
    """Rejects decodable JSON if any object repeats a key.

    Decoding drops all but the last value of a repeated key, so encoding the result again yields
    fewer colons. Counting them is ten times faster than examining the keys.
    """
    if rb"\u003" not in line:  # the escape of a colon
        again = _encoder.encode(_decoder(Any).decode(line))
        if again.count(b":") == line.count(b":"):
            return
    for key in json_problems.repeated_keys(line):
        raise ProtocolError(f"an object has the key {key!r} more than once")


def encode_request(number: int, operation: str, args: messages.Args) -> bytes:
    """Encodes a request as one line, including the line break."""
    return _encoder.encode({"id": number, "op": operation, "args": args}) + b"\n"


def decode_args(request: Request) -> messages.Args:
    """Decodes the arguments of a request.

    Raises:
        ProtocolError: the operation is unknown, or the arguments do not match it.
    """
    if request.op not in OPERATIONS:
        raise ProtocolError(f"unknown operation {request.op!r}")
    return cast("messages.Args", decode(request.args, OPERATIONS[request.op].args))


def encode_answer(number: int, answer: messages.Answer) -> bytes:
    """Encodes a response as one line, including the line break."""
    refused = isinstance(answer, messages.Refusal)
    kind = "refused" if refused else _NO_RESULT_KINDS.get(type(answer), "ok")
    return _encoder.encode({"id": number, kind: answer}) + b"\n"


def decode_answer(line: bytes, number: int, operation: str) -> messages.Answer:
    """Decodes the response to request `number` of `operation`.

    Raises:
        ProtocolError: the line is not a response to that request.
    """
    if len(line) > LONGEST_ANSWER:
        raise ProtocolError(f"the line is longer than {LONGEST_ANSWER} bytes")
    try:
        return _decode_response(line, number, operation)
    except ProtocolError:
        # For invalid JSON, our own message is clearer than the parser's.
        if not nests_deeply(line) and (problems := json_problems.read(line).problems):
            raise ProtocolError(problems[0][0]) from None
        raise


def _decode_response(line: bytes, number: int, operation: str) -> messages.Answer:
    response = decode(line, _Response)
    if response.id != number:
        raise ProtocolError(f"expected a response with id {number}, got id {response.id}")
    given = [
        (kind, value)
        for kind in _ANSWER_KINDS
        if isinstance(value := getattr(response, kind), msgspec.Raw)
    ]
    if len(given) != 1:
        raise ProtocolError(f"expected exactly one of {', '.join(_ANSWER_KINDS)}, got {len(given)}")
    kind, body = given[0]
    try:
        answer = _decode_body(kind, body, operation)
    except ProtocolError as error:
        raise ProtocolError(f"in {kind}: {error}") from None
    _require_unique_keys(line)
    return answer


def _decode_body(kind: str, body: msgspec.Raw, name: str) -> messages.Answer:
    operation = OPERATIONS[name]
    if kind != "ok" or operation.result is messages.Hello:
        size = memoryview(body).nbytes
        if size > LONGEST_REASON:
            raise ProtocolError(f"got {size:,} bytes (expected at most {LONGEST_REASON:,})")
    if kind == "ok" and operation.result is messages.Hello:
        return _decode_hello(body)
    if kind == "ok":
        return cast("messages.Answer", decode(body, operation.result))
    if kind in _NO_RESULTS:
        return decode(body, _NO_RESULTS[kind])
    if not operation.refusals:
        raise ProtocolError(f"`{name}` must not be refused")
    return _decode_refusal(body, operation.refusals)


def _decode_hello(body: msgspec.Raw) -> messages.Hello:
    """Decodes `hello`; errors about a misspelt field or level suggest the nearest name."""
    try:
        return decode(body, messages.Hello)
    except ProtocolError:
        fields = decode(body, dict[str, Any])
        for field in fields:
            if field not in messages.Hello.__struct_fields__:
                raise ProtocolError(
                    unknown("field", field, messages.Hello.__struct_fields__)
                ) from None
        level = fields.get("level")
        if isinstance(level, str) and level not in messages.LEVELS:
            raise ProtocolError(unknown("level", level, messages.LEVELS)) from None
        raise


def _decode_refusal(body: msgspec.Raw, kinds: tuple[type[msgspec.Struct], ...]) -> messages.Answer:
    # msgspec allows only one untagged struct in a union, so the first field selects the type.
    fields = decode(body, dict[str, Any])
    for kind in kinds:
        if kind.__struct_fields__[0] in fields:
            return cast("messages.Answer", decode(body, kind))
    names = " or ".join(kind.__struct_fields__[0] for kind in kinds)
    raise ProtocolError(f"missing field {names}")
