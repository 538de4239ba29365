"""`numaproof board` with reports of real runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Command

SMALL = ("--machine", "laptop-4c8t", "--select", "example-guaranteed-*")
CASE = "example-guaranteed-integer-is-exclusive"
SIGNATURE = "invariant state-keeps-what-was-given"


def body(
    version: str, wrong: str, name: str = "sharer", home: str = "https://sharer.example"
) -> str:
    """A program with its own name that assigns no exclusive CPUs if `wrong`."""
    return f"""
    reply = json.loads(codec.encode_answer(
        request.id, reference.call(request.op, codec.decode_args(request))
    ))
    if request.op == "hello":
        reply["ok"].update(
            name={name!r}, version={version!r}, homepage={home!r}, level="placement"
        )
    if request.op == "admit" and "ok" in reply and ({wrong}):
        for container in reply["ok"]["containers"].values():
            container["exclusive"] = ""
    print(json.dumps(reply), flush=True)
    """


@pytest.fixture
def sharer(command: Command, program: Callable[[str], str]) -> Callable[..., Path]:
    """Checks the program and returns its folder of reports."""

    def check(version: str, wrong: str = "True", *more: str, **who: str) -> Path:
        out = Path(f"reports/sharer-{version}")
        ran = program(body(version, wrong, **who))
        command("check", *SMALL, "--implementation", ran, "--out", out, *more)
        return out

    return check


def site(folder: Path) -> dict[str, bytes]:
    """Returns the files of a site by name."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.commands
def test_reports_of_real_runs_become_a_site(
    command: Command, sharer: Callable[..., Path], tmp_path: Path
) -> None:
    sharer("0.9")
    sharer("0.10", "admissions > 1")
    command("check", *SMALL, "--out", "reports/reference")
    ended = command("board", "reports", "--out", "site", "--out-data", "data", "--json")
    assert ended.code == 0
    assert ended.err == ""
    reference, ours = ended.json()["implementations"]
    assert reference["requirements"]["met"] == reference["requirements"]["asked"] > 0
    assert not reference["complete"]  # a single machine, and some cases
    assert ours["version"] == "0.10"
    assert ours["case_runs"]["failed"] > 0
    assert ours["findings"] == {"failed": 1}
    made = site(Path("site"))
    assert {"index.html", "matrix.html", "findings.html", "machines.html", ours["page"]} <= set(
        made
    )
    page = made[ours["page"]].decode()
    assert page.index(">0.10 <") < page.index(">0.9 <")
    assert "<code>example-guaranteed-" in page
    assert "https://sharer.example" in made["index.html"].decode()
    assert b"requirements" in made[ours["badge"]]
    # Neither the order of the folders nor the form of a run matters: reports or data.
    folders = ("reports/sharer-0.9", "reports/reference", "reports/sharer-0.10")
    for number, paths in enumerate((folders, folders[::-1], ("data",))):
        assert command("board", *paths, "--out", f"again-{number}").code == 0
        assert site(Path(f"again-{number}")) == made
    assert command("board", "reports", "--out", "site", "--out-data", "one.json").code == 0
    assert command("board", "one.json", "--out", "from-one").code == 0
    assert site(Path("from-one")) == made
    assert str(tmp_path) not in Path("one.json").read_text()
    # Pages of removed implementations are deleted.
    command("board", "reports/reference", "--out", "site")
    assert ours["page"] not in site(Path("site"))


@pytest.mark.commands
def test_known_failures_are_shown_with_their_reasons(
    command: Command, sharer: Callable[..., Path]
) -> None:
    reasons = {
        CASE: "own rules: shares every CPU",
        "example-guaranteed-by-limits-alone-is-exclusive": "finding: <b>two</b> owners\u202e",
    }
    known = [{"case": one, "signature": SIGNATURE, "reason": why} for one, why in reasons.items()]
    Path("known.yaml").write_text(json.dumps({"known_failures": known}))
    reports = sharer("1", "True", "--known-failures", "known.yaml")
    (one,) = command("board", reports, "--out", "site", "--json").json()["implementations"]
    assert one["findings"]["own rules"] == one["findings"]["finding"] == 1
    assert "failed" not in one["case_runs"]
    page = Path("site/findings.html").read_text()
    assert "shares every CPU" in page
    assert "own rules: shares" not in page
    assert "&lt;b&gt;two&lt;/b&gt; owners⟨U+202E⟩" in page
    matrix = Path("site/matrix.html").read_text()
    assert "<b>two" not in matrix
    assert "\u202e" not in matrix


@pytest.mark.commands
def test_text_from_a_program_is_escaped(command: Command, sharer: Callable[..., Path]) -> None:
    reports = sharer("1", name='"><script>alert(1)</script>', home="javascript:alert(1)")
    (one,) = command("board", reports, "--out", "site", "--json").json()["implementations"]
    assert one["page"] == "implementations/script-alert-1-script.html"
    for name, content in site(Path("site")).items():
        assert b"<script>alert" not in content, name
        assert b"javascript:" not in content, name


@pytest.fixture
def reports(command: Command) -> Path:
    """Reports of the reference."""
    command("check", "--machine", "laptop-4c8t", "--select", CASE, "--out", "reports/run")
    return Path("reports/run")
