"""numaproof's protocol for adapters in Python (docs/protocol.md): CPU sets and the request loop.

It uses only the standard library, because build.sh copies this file next to adapter.py. An
adapter calls

    serve(HELLO, {"discover": discover})

with handlers that take the decoded arguments and return the result. A handler raises `Refusal` or
`UnsupportedOperation` for the other answers. Any other exception becomes a fault with its stack
trace.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import IO

    Handler = Callable[[dict[str, Any]], dict[str, Any]]

UNEXPECTED = "UnexpectedAdmissionError"
"""The reason for rejecting a pod or refusing an assignment if there are too few CPUs."""


class Refusal(Exception):  # noqa: N818 - a deliberate answer, not an error
    """A deliberate refusal, with the stage of a refused start or the reason for a rejected pod."""

    def __init__(self, message: str, *, stage: str | None = None, reason: str = UNEXPECTED) -> None:
        super().__init__(message)
        kind = {"stage": stage} if stage else {"reason": reason}
        self.answer = {"refused": {**kind, "message": message}}


class UnsupportedOperation(Exception):  # noqa: N818 - a deliberate answer, not an error
    """The implementation lacks the requested operation or feature."""


def serve(hello: Mapping[str, Any], handlers: Mapping[str, Handler]) -> None:
    """Answers requests on standard input until it ends.

    Output from any other code goes to standard error, because standard output carries the protocol.
    """
    with os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n") as out:
        os.dup2(2, 1)
        _answer(sys.stdin.buffer, out, {"hello": lambda _args: dict(hello), **handlers})


def _answer(requests: Iterable[bytes], out: IO[str], handlers: Mapping[str, Handler]) -> None:
    for line in requests:
        request = json.loads(line)
        answer = {"id": request["id"], **_respond(request, handlers)}
        print(json.dumps(answer), file=out, flush=True)


def _respond(request: Mapping[str, Any], handlers: Mapping[str, Handler]) -> dict[str, Any]:
    handler = handlers.get(request["op"])
    if handler is None:
        return {"unsupported": {"what": f"operation {request['op']}"}}
    try:
        return {"ok": handler(request.get("args") or {})}
    except Refusal as refusal:
        return refusal.answer
    except UnsupportedOperation as lack:
        return {"unsupported": {"what": str(lack)}}
    except Exception as error:  # noqa: BLE001 - any failure is reported with its traceback
        return {"fault": {"message": repr(error), "trace": traceback.format_exc()}}


def cpu_set(text: str) -> set[int]:
    """Parses CPUs in the Linux list format, such as ``0-3,8``."""
    spans = [part.split("-") for part in text.strip().split(",") if part]
    return {cpu for span in spans for cpu in range(int(span[0]), int(span[-1]) + 1)}


def cpu_list(cpus: Iterable[int]) -> str:
    """Formats CPUs in the Linux list format, with ranges as long as possible."""
    spans: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
