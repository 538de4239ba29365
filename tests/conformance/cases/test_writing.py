"""Cases as files."""

from __future__ import annotations

import msgspec

from numaproof.conformance.cases import loading, writing

CASE = next(case for case in loading.bundled_cases() if case.id == "static-needs-a-memory-limit")


def test_of_a_long_title_the_beginning_is_written() -> None:
    message = "containers.app.cpus is 1,5 against 2,6; " * 100
    written = writing.text(msgspec.structs.replace(CASE, title=message))
    (read,) = loading.parse(written, "finding.yaml")
    assert read.title == f"{message[: writing.LONGEST_TITLE - 1].rstrip()}…"
    assert read.steps == CASE.steps


def test_a_title_of_a_line_is_written_whole() -> None:
    exact = msgspec.structs.replace(CASE, title="x" * writing.LONGEST_TITLE)
    (read,) = loading.parse(writing.text(exact), "finding.yaml")
    assert read.title == exact.title
