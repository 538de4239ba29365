"""Modules that write files without `write_file`, with the reasons why that is safe."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from builders import checkout
from builders.checkout import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITING = frozenset({"write_text", "write_bytes", "mkstemp", "NamedTemporaryFile", "copyfile"})
"""Names that Python uses to write or create files."""

OPENING = frozenset({"open", "fdopen", "FileIO", "File"})
MODES = ("w", "x", "a", "r+")
FLAGS = frozenset({"O_WRONLY", "O_RDWR", "O_CREAT"})

NOWHERE = "opens /dev/null"
STATE = "writes a state directory, as the kubelet does"
UNPACKING = "writes to a temporary folder, or to a new folder that is renamed when complete"

REASONS = {
    "cli/main.py": NOWHERE,
    "conformance/execution/programs/supervisor.py": NOWHERE,
    "fakesys/archive.py": UNPACKING,
    "fakesys/writers.py": UNPACKING,
    "campaign/journal.py": "appends whole lines, and removes partial ones on a full disk",
    "kubelet/bound_pods.py": "writes to a run's folder, which is in memory",
    "kubelet/namespaces.py": "writes below a run's folder, which is in memory, and to /proc",
    "kubelet/settings.py": "writes to a run's folder, which is in memory",
    "inputs/door.py": "opens a campaign's journal for its owner",
    "reference/checkpoints/files.py": STATE,
    "reports/files.py": "appends whole lines, and removes partial ones on a full disk",
    "reports/safe_streams.py": NOWHERE,
}
"""The modules that write files directly, each with the reason."""

OWN = "workdir/"
"""The package with `write_file`, temporary folders and state directories."""


def modules() -> Iterator[Path]:
    yield from checkout.modules().values()


def writings(path: Path) -> Iterator[int]:
    """Returns the lines of a module that write a file or open one for writing."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in WRITING:
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in OPENING:
                given = [*node.args, *(one.value for one in node.keywords if one.arg == "mode")]
                modes = [str(one.value) for one in given if isinstance(one, ast.Constant)]
                if any(one.startswith(MODES) and len(one) <= len("r+b") for one in modes):
                    yield node.lineno
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in FLAGS:
                yield node.lineno


def test_modules_that_write_files_directly_have_a_reason() -> None:
    found = {str(path.relative_to(ROOT)): sorted(writings(path)) for path in modules()}
    others = {name: lines for name, lines in found.items() if lines and not name.startswith(OWN)}
    assert {name: lines for name, lines in others.items() if name not in REASONS} == {}
    assert REASONS.keys() - others.keys() == set()


def test_writing_files_directly_would_be_found(tmp_path: Path) -> None:
    ways = """
path.write_text(text)
path.open("wb")
open(name, mode="x")
os.open(name, os.O_WRONLY | os.O_CREAT)
click.File("w")
tempfile.mkstemp()
path.open("rb")
search.open(what, "words")
write_file(path, text)
"""
    (tmp_path / "x.py").write_text(ways, encoding="utf-8")
    assert sorted({*writings(tmp_path / "x.py")}) == [2, 3, 4, 5, 6, 7]
