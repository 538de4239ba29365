"""Messages to and from JSON Lines, one message per line.

Decoding is as strict as the protocol page. Every failure is a `ProtocolError` that says what is
wrong with the line: its text is shown verbatim to the implementation's author.
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
"""Maximum length of a line in bytes, line break included."""

LONGEST_ANSWER = 16 * 1024 * 1024
"""Maximum length of a response: that of the largest machine is a third of it."""

LONGEST_REASON = 1024 * 1024
"""Maximum length of what is said in any other response than `ok`, and in that to `hello`."""

MAX_LEVELS = 200
"""Levels of lists and objects in a line. No message has a tenth of them; Python can compute with a
thousand, and other numbers of them on other versions."""

MAX_CPUS = 8192
MAX_NUMA_ID = 1023
"""CPUs and NUMA nodes of Linux, of which no number in a message reaches beyond."""

_MAX_SHOWN = 80
"""Characters of a list that an error shows."""

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
    """A numbered request with its arguments not yet decoded."""

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
    """JSON form of the set types, for msgspec."""
    if isinstance(value, CPUSet):
        return str(value)
    if isinstance(value, NUMASet):
        return list(value)
    raise NotImplementedError(f"no JSON form for {type(value).__name__}")


def decode_hook(kind: type, value: object) -> object:
    """The set types from their JSON form, for msgspec.

    Raises:
        ValueError: the value does not have that form; msgspec adds the path.
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
    """The message as one line of JSON, without the line break.

    Bytes that are no UTF-8, which file names and arguments may have, are written as escapes.
    """
    try:
        return _encoder.encode(message)
    except UnicodeEncodeError:
        return _encoder.encode(_encodable(to_plain(message)))


def _encodable(value: Any) -> Any:
    """Plain JSON values without surrogates."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(one) for one in value]
    return value


def to_plain(message: object) -> Any:
    """The message as plain JSON values (dictionaries, lists, strings, numbers)."""
    return msgspec.to_builtins(message, enc_hook=encode_hook, str_keys=True)


def from_plain(value: object, kind: type[T]) -> T:
    """The message that plain JSON values represent.

    Raises:
        ProtocolError: the values do not fit `kind`.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        raise ProtocolError(str(error)) from None


def decode(line: bytes | str | msgspec.Raw, kind: type[T]) -> T:
    """The message of type `kind` that a line holds.

    Raises:
        ProtocolError: the line is not JSON, is nested too deeply, or does not fit `kind`.
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
    """The plain values that JSON of any form holds.

    Raises:
        ProtocolError: the text is not JSON, or is nested too deeply.
    """
    return decode(text, cast("type", Any))


_TEXTS = re.compile(rb'"[^"]*"')
_ALL_BUT_BRACKETS = bytes({*range(256)} - {*b'[]{}"'})


def nests_deeply(text: bytes | str) -> bool:
    """Whether JSON has more than `MAX_LEVELS` of lists and objects inside each other."""
    line = text.encode(errors="replace") if isinstance(text, str) else text
    if line.count(b"[") + line.count(b"{") <= MAX_LEVELS:
        return False
    # Without escapes, each quotation mark begins or ends a text.
    plain = line.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in line else line
    quoted = plain.translate(None, _ALL_BUT_BRACKETS).replace(b'""', b"")
    left = _TEXTS.sub(b"", quoted)
    for _ in range(MAX_LEVELS):
        # Each turn takes the innermost level out.
        left, before = left.replace(b"[]", b"").replace(b"{}", b""), len(left)
        if not left or len(left) == before:  # nothing is left, or nothing that is JSON
            return False
    return bool(left)


def _require_unique_keys(line: bytes) -> None:
    """Refuses JSON, already decoded once, in which an object repeats a key.

    Only the last value of such a key is read, so the line written again has fewer colons. That is
    ten times as fast as looking at the keys.
    """
    if rb"\u003" not in line:  # the escape of a colon
        again = _encoder.encode(_decoder(Any).decode(line))
        if again.count(b":") == line.count(b":"):
            return
    for key in json_problems.repeated_keys(line):
        raise ProtocolError(f"an object has the key {key!r} more than once")


def encode_request(number: int, operation: str, args: messages.Args) -> bytes:
    """A request as one line, with its line break."""
    return _encoder.encode({"id": number, "op": operation, "args": args}) + b"\n"


def decode_args(request: Request) -> messages.Args:
    """The arguments of a request.

    Raises:
        ProtocolError: the operation is unknown, or the arguments do not fit it.
    """
    if request.op not in OPERATIONS:
        raise ProtocolError(f"unknown operation {request.op!r}")
    return cast("messages.Args", decode(request.args, OPERATIONS[request.op].args))


def encode_answer(number: int, answer: messages.Answer) -> bytes:
    """A response as one line, with its line break."""
    refused = isinstance(answer, messages.Refusal)
    kind = "refused" if refused else _NO_RESULT_KINDS.get(type(answer), "ok")
    return _encoder.encode({"id": number, kind: answer}) + b"\n"


def decode_answer(line: bytes, number: int, operation: str) -> messages.Answer:
    """The answer that a response line holds for request `number` of `operation`.

    Raises:
        ProtocolError: the line is not a response to that request.
    """
    if len(line) > LONGEST_ANSWER:
        raise ProtocolError(f"the line is longer than {LONGEST_ANSWER} bytes")
    try:
        return _decode_response(line, number, operation)
    except ProtocolError:
        # What is no JSON has better words than those of the parser.
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
            raise ProtocolError(f"{size:,} bytes are more than the {LONGEST_REASON:,} allowed")
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
    """Who claims what; of a misspelt field or level the error names the nearest."""
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
    # msgspec allows one untagged struct in a union, so the first field decides which refusal it is.
    fields = decode(body, dict[str, Any])
    for kind in kinds:
        if kind.__struct_fields__[0] in fields:
            return cast("messages.Answer", decode(body, kind))
    names = " or ".join(kind.__struct_fields__[0] for kind in kinds)
    raise ProtocolError(f"missing field {names}")
