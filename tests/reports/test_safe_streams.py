"""Output streams: external text never controls the terminal."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from pathlib import Path

import click
import pytest
from rich.table import Table
from rich.text import Text

from numaproof.reports.console import ShownConsole
from numaproof.reports.safe_streams import ShownStream, shown_streams

ROOT = Path(__file__).parents[2]
HOSTILE = "\x1b]0;title\x07 \x9b31m \x7f \u202e \u2066 \u200b \u0600 \U000e0041 \ud800"
RAW = (*HOSTILE.split(" "), "\x1b", "\x07")


def stream(encoding: str = "utf-8") -> tuple[ShownStream, io.BytesIO]:
    written = io.BytesIO()
    return ShownStream(io.TextIOWrapper(written, encoding=encoding)), written


def test_hidden_characters_are_made_visible_in_all_output() -> None:
    shown, written = stream()
    shown.write(HOSTILE)
    click.echo(HOSTILE, file=shown)
    click.echo(HOSTILE.encode(errors="surrogatepass"), file=shown)
    console = ShownConsole(shown, force_terminal=True, width=200)
    table = Table(HOSTILE)
    table.add_row(HOSTILE)
    for one in (HOSTILE, Text(HOSTILE, "bold"), table):
        console.print(one)
    shown.flush()
    text = written.getvalue().decode()
    assert "\x1b[1m" in text
    own = text.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert not [one for one in RAW if one in own]
    assert own.count("⟨U+001B⟩]0;title") == 6
    assert own.count("\\u001b]0;title\\u0007") == 1


def test_unencodable_characters_do_not_end_the_command() -> None:
    shown, written = stream("ascii")
    shown.write("é \x1b")
    shown.flush()
    assert written.getvalue() == b"\\xe9 \\u27e8U+001B\\u27e9"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("::error file=a::b", "⟨U+003A⟩:error file=a::b"),
        ("a\n  ::stop-commands::x", "a\n  ⟨U+003A⟩:stop-commands::x"),
        ("a ##[group]b", "a ⟨U+0023⟩#[group]b"),
        ("std::vector::iterator, ::1 and ##", "std::vector::iterator, ::1 and ##"),
    ],
)
def test_no_line_is_a_github_workflow_command(text: str, expected: str) -> None:
    made, written = stream()
    made.write(text)
    made.flush()
    assert written.getvalue().decode() == expected


def test_the_original_streams_are_restored() -> None:
    before = sys.stdout, sys.stderr
    with shown_streams():
        assert isinstance(sys.stdout, ShownStream)
        assert isinstance(sys.stderr, ShownStream)
    assert (sys.stdout, sys.stderr) == before
    assert not sys.stdout.closed


@pytest.mark.parametrize("redirection", ["<&-", "2>&-", "<&- 2>&-"])
def test_closed_streams_cause_no_traceback(redirection: str, tmp_path: Path) -> None:
    numaproof = Path(sys.executable).parent / "numaproof"
    for args, code in (("profile list", 0), ("profile show nothing", 2)):
        ended = subprocess.run(
            ["sh", "-c", f"{numaproof} {args} {redirection}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == code
        assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("command", ["profile list", "check"])
@pytest.mark.parametrize("redirection", [">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_closed_standard_output_exits_with_2(
    command: str, redirection: str, tmp_path: Path
) -> None:
    numaproof = Path(sys.executable).parent / "numaproof"
    ended = subprocess.run(
        ["sh", "-c", f"{numaproof} {command} {redirection}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    told = "numaproof: standard output is closed; redirect it to /dev/null to discard it\n"
    assert ended.stderr == ("" if "2>&-" in redirection else told)
    assert [*tmp_path.iterdir()] == []


def test_all_output_goes_through_the_safe_streams() -> None:
    """Only one module creates consoles and replaces streams."""
    found = set()
    for folder in ("cli", "reports", "conformance", "simulation", "campaign"):
        for path in (ROOT / folder).rglob("*.py"):
            name = str(path.relative_to(ROOT))
            if "templates/" in name or name in ("reports/safe_streams.py", "reports/terminal.py"):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                match node:
                    case ast.Call(func=ast.Name("Console") | ast.Attribute(attr="Console")):
                        found.add(f"{name}: Console")
                    case ast.Attribute(value=ast.Name("sys"), attr="__stdout__" | "__stderr__"):
                        found.add(f"{name}: sys.{node.attr}")
                    case ast.Attribute(
                        value=ast.Name("click"), attr="progressbar" | "style" | "secho"
                    ):
                        found.add(f"{name}: click.{node.attr}")
    assert found == set()
