"""`numaproof board` with the reports of real runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from numaproof.reports.board.data import SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Command

SMALL = ("--machine", "laptop-4c8t", "--select", "example-guaranteed-*")
CASE = "example-guaranteed-integer-is-exclusive"
SIGNATURE = "invariant state-keeps-what-was-given"


def body(
    version: str, wrong: str, name: str = "sharer", home: str = "https://sharer.example"
) -> str:
    """A program with a name of its own that gives no exclusive CPUs if `wrong` holds."""
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
    """Checks such a program, and returns the folder of its reports."""

    def check(version: str, wrong: str = "True", *more: str, **who: str) -> Path:
        out = Path(f"reports/sharer-{version}")
        ran = program(body(version, wrong, **who))
        command("check", *SMALL, "--implementation", ran, "--out", out, *more)
        return out

    return check


def site(folder: Path) -> dict[str, bytes]:
    """The files of a site by their names."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.commands
def test_reports_of_runs_become_a_site(
    command: Command, sharer: Callable[..., Path], tmp_path: Path
) -> None:
    sharer("0.9")
    sharer("0.10", "admissions > 1")
    command("check", *SMALL, "--out", "reports/reference")
    ended = command("board", "reports", "--out", "site", "--data", "data", "--json")
    assert ended.code == 0
    assert ended.err == ""
    reference, ours = ended.json()["implementations"]
    assert reference["requirements"]["met"] == reference["requirements"]["asked"] > 0
    assert not reference["complete"]  # a machine alone, and some cases
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
    # The order of the folders does not matter, nor whether a run comes as reports or as data.
    folders = ("reports/sharer-0.9", "reports/reference", "reports/sharer-0.10")
    for number, paths in enumerate((folders, folders[::-1], ("data",))):
        assert command("board", *paths, "--out", f"again-{number}").code == 0
        assert site(Path(f"again-{number}")) == made
    assert command("board", "reports", "--out", "site", "--data", "one.json").code == 0
    assert command("board", "one.json", "--out", "from-one").code == 0
    assert site(Path("from-one")) == made
    assert str(tmp_path) not in Path("one.json").read_text()
    # Pages of implementations that are no longer there do not stay.
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
def test_the_site_has_files_that_replay_what_was_found(
    command: Command, program: Callable[[str], str]
) -> None:
    ran = program(body("1", "True"))
    fuzz = (
        "fuzz",
        "--implementation",
        ran,
        "--max-examples",
        "20",
        "--seed",
        "1",
        "--out",
        "fuzzed",
    )
    assert command(*fuzz).code == 1
    command("board", "fuzzed", "--out", "site")
    (case,) = Path("site/cases").iterdir()
    assert case.read_text() == next(Path("fuzzed/findings").iterdir()).read_text()
    assert f"numaproof replay cases/{case.name}" in Path("site/findings.html").read_text()
    assert command("replay", case, "--implementation", ran).code == 1


@pytest.mark.commands
def test_what_a_program_says_of_itself_is_no_markup(
    command: Command, sharer: Callable[..., Path]
) -> None:
    reports = sharer("1", name='"><script>alert(1)</script>', home="javascript:alert(1)")
    (one,) = command("board", reports, "--out", "site", "--json").json()["implementations"]
    assert one["page"] == "implementations/script-alert-1-script.html"
    for name, content in site(Path("site")).items():
        assert b"<script>alert" not in content, name
        assert b"javascript:" not in content, name


@pytest.fixture
def reports(command: Command) -> Path:
    """The reports of the reference."""
    command("check", "--machine", "laptop-4c8t", "--select", CASE, "--out", "reports/run")
    return Path("reports/run")


def test_an_incomplete_run_is_shown_as_one(command: Command, reports: Path) -> None:
    stream = reports / "events.jsonl"
    lines = stream.read_bytes().splitlines(keepends=True)
    stream.write_bytes(b"".join(lines[:-1]) + b'{"event":"campaign en')
    (one,) = command("board", reports, "--out", "site", "--json").json()["implementations"]
    assert one["complete"] is False
    assert "incomplete" in Path("site/index.html").read_text()
    assert "the run was killed" in Path(f"site/{one['page']}").read_text()
    assert "incomplete" in Path(f"site/{one['badge']}").read_text()


def test_what_is_no_run_is_refused_with_what_to_do(command: Command, reports: Path) -> None:
    def refused(*paths: str | Path) -> str:
        ended = command("board", *paths, "--out", "site")
        assert ended.code == 2
        assert not Path("site").exists()
        return ended.err

    Path("empty").mkdir()
    assert "empty: there is no run in it (name a folder that --out of check" in refused("empty")
    assert "empty: there is no run" in refused(reports, "empty")
    assert "'missing' does not exist" in refused("missing")
    Path("other.json").write_text('{"plan": 1}')
    assert "other.json: no board data: " in refused("other.json")
    Path("cut.json").write_text('{"data":"numaproof board","version":1,')
    assert "cut.json: damaged, no JSON: " in refused("cut.json")
    Path("new.json").write_text('{"data":"numaproof board","version":2}')
    assert "new.json: version: numaproof board in version 2" in refused("new.json")
    Path("none.json").write_text('{"data":"numaproof board","version":1}')
    assert "none.json: there is no run in it" in refused("none.json")
    command("board", reports, "--out", "other", "--data", "long.json")
    long = Path("long.json").read_text().replace("numaproof reference", "x" * 1000)
    Path("long.json").write_text(long)
    assert "length <= 120 - at `$.runs[0].author.name`" in refused("long.json")
    stream = reports / "events.jsonl"
    whole = stream.read_bytes()
    stream.write_bytes(whole.replace(b'"outcome":"pass"', b'"outcome":"passed"'))
    assert f"{stream}:2: no event: " in refused("reports")
    stream.write_bytes(whole.partition(b"\n")[2])
    assert f"{stream}:1: the stream has no beginning" in refused("reports")
    stream.write_bytes(whole.partition(b"\n")[0])
    said = f"{stream}: it has no whole line: the run was killed (repeat the run)"
    assert said in refused("reports")
    stream.write_bytes(b"")
    assert f"{stream}: it is empty: the run was killed (repeat the run)" in refused("reports")


def test_a_folder_with_anything_else_is_left_alone(command: Command, reports: Path) -> None:
    Path("site/implementations").mkdir(parents=True)
    kept = Path("site/implementations/mine.html")
    kept.write_text("mine")
    ended = command("board", reports, "--out", "site")
    assert ended.code == 2
    assert "site: there is something in it that is no board" in ended.err
    assert site(Path("site")) == {"implementations/mine.html": b"mine"}


def test_only_board_data_is_overwritten(command: Command, reports: Path) -> None:
    notes = Path("notes.json")
    for kept in ('{"mine": 1}', '{"data":"mine","version":1}', "no JSON", "", '["a"]'):
        notes.write_text(kept)
        ended = command("board", reports, "--out", "site", "--data", notes)
        assert ended.code == 2, kept
        assert "notes.json: there is something in it that is no board data" in ended.err
        assert notes.read_text() == kept
        assert not Path("site").exists()
    Path("folder.json").mkdir()
    assert command("board", reports, "--out", "site", "--data", "folder.json").code == 2
    assert not Path("site").exists()
    # Board data is, of whatever version.
    notes.write_text('{"version":0,"data":"numaproof board","more":1}')
    for _ in range(2):
        assert command("board", reports, "--out", "site", "--data", notes).code == 0
    assert '"version":1' in notes.read_text()


@pytest.mark.parametrize("count", [-1, 2**53 + 1])
def test_counts_that_cannot_be_are_refused(command: Command, reports: Path, count: int) -> None:
    command("board", reports, "--out", "other", "--data", "data.json")
    one = json.loads(Path("data.json").read_text())
    one["runs"][0]["outcomes"]["pass"] = count
    Path("data.json").write_text(json.dumps(one))
    ended = command("board", "data.json", "--out", "site")
    assert ended.code == 2
    assert "data.json: no board data: Expected `int` " in ended.err
    assert "at `$.runs[0].outcomes[...]`" in ended.err


def test_board_data_is_found_below_a_folder(command: Command, reports: Path) -> None:
    command("board", reports, "--out", "site", "--data", "a/b/data")
    (file,) = Path("a/b/data").iterdir()
    assert file.name.endswith(SUFFIX)
    assert len(file.read_bytes()) < len((reports / "events.jsonl").read_bytes()) / 10
    shutil.copy(file, "a/notes.json")
    # Reports take the place of what board data has of the same version, release and level.
    file.write_text(file.read_text().replace('"pass":', '"fail":'))
    command("board", "a", "--out", "worse")
    assert site(Path("worse")) != site(Path("site"))
    assert command("board", "a", reports, "--out", "site", "--data", "a/b/data").code == 0
    ended = command("board", "a", "--out", "again")
    assert ended.err == ""
    assert ended.out.startswith("1 run of 1 implementation: ")
    assert site(Path("again")) == site(Path("site"))


def test_reports_of_a_part_leave_the_data_of_a_whole_run(command: Command, reports: Path) -> None:
    command("board", reports, "--out", "site", "--data", "data.json")
    whole = json.loads(Path("data.json").read_text())
    del whole["runs"][0]["gaps"]
    whole["runs"][0]["outcomes"]["pass"] = 1000
    Path("data.json").write_text(json.dumps(whole))
    ended = command("board", "data.json", reports, "--out", "again", "--json")
    said = "an incomplete run of numaproof reference 0.1.0 is left out, for there is a whole one: "
    assert said in ended.err
    assert f"--machine laptop-4c8t --select {CASE}" in ended.err
    (one,) = ended.json()["implementations"]
    assert one["complete"]
    assert one["case_runs"]["pass"] == 1000
