"""Modules that open files directly, with the reasons why these aren't users' files."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from builders import checkout
from builders.checkout import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPENING = frozenset(
    {
        *("open", "fdopen", "FileIO", "File", "FileType", "read_text", "read_bytes"),
        *("GzipFile", "LZMAFile", "BZ2File", "ZipFile", "decompress", "LZMADecompressor"),
    }
)
"""Names used by Python and its libraries to open or decompress files."""

PARSING = frozenset({"load", "safe_load", "load_all", "safe_load_all", "full_load", "compose"})
"""Names used by PyYAML to parse without the limits of `numaproof.inputs.documents`."""

WRITING = ("w", "x")

PACKAGED = "reads a file of the package"
NODE = "reads what a kubelet wrote in its run's folder"
OWN = "reads files that numaproof has just written"
PROCESSES = "reads /proc to find the processes of a program"
TREE = "reads single files of machines' trees, below a root that was opened elsewhere"

REASONS = {
    "cli/init.py": PACKAGED,
    "cli/json_schemas.py": PACKAGED,
    "cli/main.py": "opens /dev/null for output without a reader",
    "conformance/cases/loading.py": PACKAGED,
    "conformance/cases/writing.py": "asks PyYAML for positions in text that was read before",
    "conformance/doctor/wording.py": PACKAGED,
    "conformance/differential/recordings.py": PACKAGED,
    "conformance/execution/programs/process.py": PROCESSES,
    "conformance/execution/programs/supervisor.py": "opens /dev/null to replace its pipes",
    "conformance/fuzzing/fuzz.py": "opens an example, which is not a file",
    "conformance/requirements.py": PACKAGED,
    "conformance/selection/listing.py": PACKAGED,
    "conformance/selection/quick.py": PACKAGED,
    "fakesys/archive.py": "unpacks an open file with its own limits",
    "fakesys/loading.py": PACKAGED,
    "fakesys/snapshot.py": TREE,
    "fakesys/writers.py": "writes trees",
    "campaign/journal.py": "reopens an open file",
    "kubelet/__main__.py": "opens servers, not files",
    "kubelet/sockets.py": "opens folders for their sockets",
    "kubelet/binary.py": "reads the header of a program",
    "kubelet/device_plugins.py": PACKAGED,
    "kubelet/host.py": "reads settings of the kernel",
    "kubelet/namespaces.py": TREE,
    "kubelet/node_state.py": NODE,
    "kubelet/pod_resources.py": PACKAGED,
    "kubelet/runtime.py": PACKAGED,
    "reference/cadvisor/sysfs.py": TREE,
    "reference/checkpoints/files.py": "reads its own state directory, as the kubelet does",
    "reference/config/flags.py": PACKAGED,
    "conformance/execution/machines.py": PACKAGED,
    "reference/config/gates.py": PACKAGED,
    "reports/files.py": OWN,
    "reports/pages.py": PACKAGED,
    "simulation/configuration_check.py": PACKAGED,
    "simulation/fields.py": PACKAGED,
    "reports/safe_streams.py": "opens /dev/null to replace a closed stream",
}
"""The modules that open files directly, each with the reason."""

ROOMS = frozenset({"inputs", "workdir"})
"""The modules that open users' files, state directories and temporary folders."""


def modules() -> Iterator[Path]:
    for path in checkout.modules().values():
        if path.relative_to(ROOT).parts[0] not in ROOMS:
            yield path


def openings(path: Path) -> Iterator[int]:
    """Returns the lines of a module that open a file for reading."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="door"))):
                continue
            case ast.Call(func=ast.Attribute(value=ast.Name(id="yaml"), attr=name)) if (
                name in PARSING
            ):
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=args) if (
                name in OPENING
            ):
                modes = [one.value for one in args if isinstance(one, ast.Constant)]
                if not any(str(mode).startswith(WRITING) for mode in modes):
                    yield node.lineno


def test_modules_that_open_files_directly_have_a_reason() -> None:
    found = {str(path.relative_to(ROOT)): sorted(openings(path)) for path in modules()}
    beside = {name: lines for name, lines in found.items() if lines}
    assert {name: lines for name, lines in beside.items() if name not in REASONS} == {}
    assert REASONS.keys() - beside.keys() == set()


def test_opening_files_directly_would_be_found(tmp_path: Path) -> None:
    ways = """
path.read_text()
open(name)
click.File("r")
lzma.decompress(content)
yaml.safe_load(text)
door.read(path)
path.open("wb")
tree.load(path)
"""
    (tmp_path / "x.py").write_text(ways, encoding="utf-8")
    assert list(openings(tmp_path / "x.py")) == [2, 3, 4, 5, 6]
