"""`numaproof campaign` with a file of known failures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numaproof.conformance.known_failures import entries

pytest.importorskip("distributed", reason="campaigns need numaproof[campaign]")

Command = Callable[..., Any]

SELECTED = ("--select", "example-*", "--seeds", "0:4")
SMALL = ("campaign", "--machine", "laptop-4c8t", "--workers", "1", *SELECTED)
SIGNATURE = "fault at admit: boom"


@pytest.mark.slow
def test_known_failures_are_not_findings_and_new_ones_are_saved(
    command: Command, program: Callable[[str], str]
) -> None:
    body = """
    if request.op == "admit":
        print(json.dumps({"id": request.id, "fault": BOOM}), flush=True)
    else:
        answer(request)
    """
    options = (*SMALL, "--implementation", program(body), "--json")
    first = command(*options, "--write-known-failures", "known.yaml")
    assert first.code == 1
    written = [one.known_failure for one in entries.read(Path("known.yaml"))]
    assert {(one.case, one.signature) for one in written} == {
        ("example-*", SIGNATURE),
        ("scenario", SIGNATURE),
    }
    counts = first.json()["tally"]

    text = Path("known.yaml").read_text()
    again = command(*options, "--write-known-failures", "known.yaml")
    assert again.code == 0, "a resumed campaign is judged by the file as it is now"
    assert Path("known.yaml").read_text() == text
    assert again.json()["findings"] == []
    for kind in ("cases", "scenarios"):
        found = dict(again.json()["tally"][kind])
        assert found.pop("known failure") == counts[kind].pop("fault")
        assert found == counts[kind]

    gone = "\n- {case: example-guaranteed-integer-is-exclusive, machine: laptop-4c8t,"
    Path("known.yaml").write_text(f"{text}{gone} signature: bang, reason: it was so}}\n")
    late = command(*options, "--known-failures", "known.yaml")
    assert late.code == 1
    (finding,) = late.json()["findings"]
    assert finding["outcome"] == "missing known failure"
    assert finding["message"].endswith("fails for another known cause now: remove the entry")
