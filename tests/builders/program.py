"""The base of the programs on pages, which answer like the reference with changes."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from numaproof.protocol import codec
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numaproof.protocol.codec import Request

reference = Reference()


def requests() -> Iterator[Request]:
    """Yields the requests on standard input."""
    for line in sys.stdin.buffer:
        yield codec.decode(line, codec.Request)


def reply_to(request: Request) -> dict[str, Any]:
    """Returns the reference's reply to a request as JSON values."""
    answer = reference.call(request.op, codec.decode_args(request))
    reply: dict[str, Any] = json.loads(codec.encode_answer(request.id, answer))
    return reply


def send(request: Request, **reply: Any) -> None:
    """Answers a request with `ok=...`, `refused=...` or `fault=...`."""
    print(json.dumps({"id": request.id} | reply), flush=True)  # noqa: T201 - the protocol


def answer(request: Request) -> None:
    """Answers a request with the reference's reply."""
    send(request, **reply_to(request))


def change(edit: Callable[[Request, dict[str, Any]], None]) -> None:
    """Answers every request with the reference's edited reply."""
    for request in requests():
        reply = reply_to(request)
        edit(request, reply)
        send(request, **reply)
