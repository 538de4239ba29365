"""What is wrong with a line that should be the response to a request.

The codec decides whether a line is right. Where it is not, this says everything that is wrong with
it, and what the answer is if that is clear all the same.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from numaproof.conformance.diagnosis import shapes
from numaproof.protocol import codec, malformed, messages
from numaproof.protocol.diagnosis import Finding
from numaproof.protocol.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS = ("ok", "refused", "unsupported", "fault")

_OF_JSON_RPC = {"result": "ok", "error": "fault", "jsonrpc": ""}
"""Fields of JSON-RPC, and what the protocol has in their place."""


@dataclass
class ReadLine:
    """What a line says.

    Attributes:
        answer: the answer, if what it is is clear.
        findings: what is wrong with the line.
        number: the id that it has, if that is a number.
        is_response: whether it is an object that could be the response to some request.
    """

    answer: messages.Answer | None = None
    findings: list[Finding] = field(default_factory=list)
    number: int | None = None
    is_response: bool = False

    def wrong(self, sentence: str, right: str = "", *, advice: bool = False) -> None:
        """Notes a mistake."""
        self.findings.append(Finding(sentence, right, advice))


def read(line: bytes, number: int, operation: str) -> ReadLine:
    """What a line says as the response to request `number`, without its line break."""
    reading = ReadLine()
    if line.endswith(b"\r"):
        reading.wrong(
            "the line ends with a carriage return and a line feed",
            "end lines with `\\n` alone; numaproof reads yours, other harnesses may not",
            advice=True,
        )
    value = _object(reading, line, number)
    if value is None:
        return reading
    reading.is_response = "id" in value or any(kind in value for kind in (*KINDS, *_OF_JSON_RPC))
    kind = _envelope(reading, value, number)
    if kind is not None:
        reading.answer = _body(reading, kind, value[kind], operation)
    if not any(not one.advice for one in reading.findings):
        try:
            reading.answer = codec.decode_answer(line, number, operation)
        except codec.ProtocolError as error:
            # A mistake that has no sentence of its own here.
            reading.wrong(str(error))
            reading.answer = None
    return reading


def _object(reading: ReadLine, line: bytes, number: int) -> dict[str, Any] | None:
    """The JSON object on the line; None if there is none."""
    right = f"`{json.dumps({'id': number, 'ok': {}})}` on a line of its own"
    found = malformed.read(line, right)
    for sentence, better in found.problems:
        reading.wrong(sentence, better)
    return found.value


def _envelope(reading: ReadLine, value: Mapping[str, Any], number: int) -> str | None:
    """Which kind of response it is; None if that is not clear."""
    _identity(reading, value, number)
    for name in value:
        if name == "id" or name in KINDS:
            continue
        meant = _OF_JSON_RPC.get(name)
        hint = f"it is `{meant}` in this protocol" if meant else shapes.nearest(name, KINDS)
        reading.wrong(
            f"`{name}` is not a field of a response",
            hint
            or "a response has `id` and exactly one of `ok`, `refused`, `unsupported`, `fault`",
        )
    given = [kind for kind in KINDS if kind in value]
    if len(given) == 1:
        return given[0]
    many = " and ".join(f"`{kind}`" for kind in given)
    reading.wrong(
        f"the response has {many}" if given else "the response has none of the four kinds",
        "exactly one of `ok` (done), `refused` (a deliberate no), `unsupported` (you do not have"
        " it), `fault` (it broke)",
    )
    return None


def _identity(reading: ReadLine, value: Mapping[str, Any], number: int) -> None:
    right = f'`"id": {number}`'
    if "id" not in value:
        reading.wrong("`id` is missing", f"repeat the id of the request: {right}")
        return
    given = value["id"]
    if type(given) is int:
        reading.number = given
        if given != number:
            reading.wrong(
                f"`id` is {given}: that is the answer to another request",
                f"repeat the id of the request: {right}",
            )
        return
    if isinstance(given, str | float):
        with suppress(ValueError, OverflowError):
            reading.number = int(given)
    reading.wrong(f"`id` is {shapes.shown(given)}; it must be an integer", right)


def _body(reading: ReadLine, kind: str, body: Any, operation: str) -> messages.Answer | None:
    known = OPERATIONS[operation]
    if kind == "ok":
        return _decoded(reading, body, known.result, kind)
    if kind == "unsupported":
        return _decoded(reading, body, messages.Unsupported, kind)
    if kind == "fault":
        return _decoded(reading, body, messages.Fault, kind)
    if not known.refusals:
        reading.wrong(
            f"`{operation}` can't be refused",
            "`unsupported` if you do not have it, `fault` if it broke",
        )
        return None
    return _decoded(reading, body, _refusal(body, known.refusals), kind)


def _refusal(body: Any, kinds: tuple[type, ...]) -> type:
    """Which refusal was meant, by the field that one has and the other lacks."""
    named = {"stage": messages.StartRefused, "reason": messages.AdmissionRefused}
    for name, kind in named.items():
        if isinstance(body, dict) and name in body and kind in kinds:
            return kind
    return kinds[0]


def _decoded(reading: ReadLine, body: Any, kind: type, name: str) -> messages.Answer | None:
    shape, mended = shapes.check(body, kind, f"`{name}`")
    reading.findings += shape.findings
    # Who the program is must be known to go on at all.
    if not shape.sound and kind is not messages.Hello:
        return None
    try:
        return cast("messages.Answer", codec.from_plain(mended, kind))
    except codec.ProtocolError as error:
        reading.wrong(str(error))
        return None
