"""The proofs of requirements as files and for a terminal: same proofs, same bytes."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, TextIO

import msgspec
from rich.progress import TimeElapsedColumn

from numaproof.folders.output_files import write_file
from numaproof.inputs.plurals import plural
from numaproof.protocol import codec
from numaproof.reports.markdown import code, escaped
from numaproof.reports.progress import Bar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numaproof.protocol.requirement_proofs import Proof, RequirementProofs

JSON, MARKDOWN = "requirements.json", "requirements.md"


def as_json(proofs: RequirementProofs) -> bytes:
    """The proofs for programs."""
    return msgspec.json.format(codec.encode(proofs), indent=1) + b"\n"


def write_files(proofs: RequirementProofs, folder: Path) -> None:
    """Writes ``requirements.json`` and ``requirements.md``.

    Raises:
        OSError: a file cannot be written.
    """
    write_file(folder / JSON, as_json(proofs))
    write_file(folder / MARKDOWN, as_markdown(proofs))


def as_text(proofs: RequirementProofs) -> str:
    """The totals, in a few lines."""
    return "\n".join(_totals(proofs)) + "\n"


def as_markdown(proofs: RequirementProofs) -> str:
    """All proofs, one row per violator."""
    return "\n".join(_markdown(proofs)) + "\n"


def line(proof: Proof) -> str:
    """Says on one line what caught a violator."""
    told = f"{proof.requirement}: {proof.violator}"
    if proof.catch is None:
        runs = plural(proof.runs, "case run")
        return f"LET THROUGH  {told}, by {runs} at level {proof.level}"
    return f"caught       {told}, by {proof.catch.case} on {proof.catch.machine}"


class ProofProgress(Bar):
    """Shows each violator that is let through, and how far the run is; a context manager.

    Args:
        stream: where to write.
        total: the number of proofs.
        environment: the variables that decide between live and plain output (default: those of
            the process).
    """

    def __init__(
        self, stream: TextIO, total: int, environment: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(stream, environment, "violators", TimeElapsedColumn())
        self._total = total
        self._done = self._missed = 0
        self.move(0, total, "0 let through")

    def show(self, proof: Proof) -> None:
        """Shows a proof that is finished."""
        self._done += 1
        if proof.catch is None:
            self._missed += 1
            self.line(line(proof))
        if self.live:
            self.move(self._done, self._total, f"{self._missed} let through")


def _totals(proofs: RequirementProofs) -> Iterator[str]:
    requirements = {proof.requirement for proof in proofs.proofs}
    yield (
        f"{plural(len(requirements), 'requirement')}, {len(proofs.proven)} proven:"
        f" {plural(len(proofs.proofs), 'violator')}, {len(proofs.let_through)} let through"
    )
    yield from (line(proof) for proof in proofs.let_through)
    if proofs.without:
        yield f"without a violator: {', '.join(proofs.without)}"
    if not proofs.complete:
        yield "INCOMPLETE: the run was cut short."


def _markdown(proofs: RequirementProofs) -> Iterator[str]:
    yield "# The requirements and their violators"
    yield ""
    for total in _totals(proofs):
        yield f"- {escaped(total, 10_000)}"
    yield ""
    yield "| Requirement | Level | Violator | Case | Machine | Release | Case runs |"
    yield "| --- | --- | --- | --- | --- | --- | ---: |"
    for requirement, group in groupby(proofs.proofs, key=lambda proof: proof.requirement):
        for number, proof in enumerate(group):
            first = (requirement, proof.level) if number == 0 else ("", "")
            yield f"| {' | '.join((*first, *_cells(proof)))} |"
    yield ""


def _cells(proof: Proof) -> Iterator[str]:
    yield code(proof.violator)
    catch = proof.catch
    if catch is None:
        yield from ("**none**", "", "")
    else:
        yield code(catch.case)
        yield code(catch.machine)
        yield catch.kubernetes
    yield str(proof.runs)
