"""Every call of a case run, for whoever replays it: the request, the answer and its problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol.events import said
from numaproof.reports.untrusted import one_line
from numaproof.reports.values import compact, without_machine
from numaproof.reports.wording import SYMBOLS, short_lines, taken_side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.events import CaseFinished, ReportedCall

_VALUE = 300
"""Maximum length of a call's arguments or answer; the saved events have them in full."""

_MANIFEST = ("uid", "name", "namespace")


def transcript(run: CaseFinished) -> Iterator[str]:
    """The lines that show a case run, call by call.

    `run` must have its steps; see `numaproof.conformance.check`.
    """
    yield f"{run.case} on {run.machine}: {run.title}"
    for number, step in enumerate(run.steps, 1):
        yield from (f"     numaproof {one_line(deed, _VALUE)}" for deed in step.before)
        yield f"{number:>4} {step.operation} {_short(_arguments(step))}"
        answer = "no answer" if step.answer is None else _short(step.answer)
        yield f"     {answer}"
        for problem in step.said:
            first, *sides = short_lines(problem, _VALUE)
            yield f"     {SYMBOLS['fail']} {first}"
            yield from (f"       {line}" for line in sides)
    defect = f" ({run.defect})" if run.defect else ""
    first, *sides = short_lines(said(run.message, run.finding), _VALUE)
    message = f": {first}" if first else ""
    side = f", {taken_side(run.parted)}" if run.parted else ""
    yield f"  {SYMBOLS[run.outcome]} {run.outcome}{defect}{side}{message}"
    yield from (f"    {line}" for line in sides)


def _arguments(step: ReportedCall) -> dict[str, Any]:
    """The arguments, with the machine and the pods of a start abbreviated."""
    args = without_machine(step.args)
    pods = args.get("pods")
    if isinstance(pods, list) and pods:
        args["pods"] = [_name(pod) for pod in pods]
    return args


def _name(pod: Any) -> str:
    metadata = pod.get("metadata") if isinstance(pod, dict) else None
    known = metadata if isinstance(metadata, dict) else {}
    return next((str(known[key]) for key in _MANIFEST if key in known), "?")


def _short(value: Any) -> str:
    return one_line(compact(value), _VALUE)
