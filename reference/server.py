"""The reference implementation as a program that reads requests on stdin and answers on stdout."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from numaproof.protocol import codec, messages

if TYPE_CHECKING:
    from typing import BinaryIO

_ID = re.compile(rb'"id"\s*:\s*(-?[0-9]{1,18})')


class Answering(Protocol):
    """An object that answers requests, such as `Reference`."""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the answer to a request."""


def serve(stdin: BinaryIO, stdout: BinaryIO, answering: Answering) -> None:
    """Answers every line of `stdin` on `stdout`, in order, until `stdin` ends.

    A line that is not a request is answered with a fault, whose id is the first id that appears in
    the line, or 0. Empty lines are ignored.
    """
    while line := stdin.readline(codec.LONGEST_LINE + 1):
        if not line.strip():
            continue
        if len(line) > codec.LONGEST_LINE:
            _skip_line(stdin, line)
            response = _seeming_id(line), _too_long()
        else:
            response = _respond(answering, line)
        stdout.write(codec.encode_answer(*response))
        stdout.flush()


def _respond(answering: Answering, line: bytes) -> tuple[int, messages.Answer]:
    try:
        request = codec.decode(line, codec.Request)
    except codec.ProtocolError as error:
        return _seeming_id(line), messages.Fault(f"the line is not a request: {error}")
    try:
        args = codec.decode_args(request)
    except codec.ProtocolError as error:
        return request.id, messages.Fault(f"{request.op}: {error}")
    return request.id, answering.call(request.op, args)


def _seeming_id(line: bytes) -> int:
    found = _ID.search(line)
    return int(found[1]) if found else 0


def _too_long() -> messages.Answer:
    return messages.Fault(f"the line is longer than {codec.LONGEST_LINE} bytes")


def _skip_line(stdin: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = stdin.readline(codec.LONGEST_LINE)
