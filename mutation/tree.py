"""What is mutated and tested: copies of the installed package and of its tests, never the sources.

The package is copied as it is installed, since only there the folders stand under one import name.
Each worker mutates a copy of its own, which comes first on its path.
"""

from __future__ import annotations

import compileall
import hashlib
import py_compile
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata, util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TESTED = "numaproof/reference"
"""What is mutated, below a tree."""

_TESTS = ("tests/conftest.py", "tests/builders", "tests/reference", "pyproject.toml")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc")


class SourceTreeError(Exception):
    """There is nothing that could be mutated; the message says why."""


@dataclass(frozen=True)
class SourceTree:
    """A folder with ``numaproof``, the tests, and what pytest is to know."""

    folder: Path

    def modules(self) -> list[Path]:
        """The modules to mutate, by name."""
        return sorted((self.folder / TESTED).rglob("*.py"))

    def digest(self, *more: str) -> str:
        """A name for all that decides how a mutation ends: files, tools, and whatever else."""
        total = hashlib.sha256()
        tools = (sys.version, *(f"{name} {metadata.version(name)}" for name in _TOOLS))
        for text in (*tools, *more):
            total.update(text.encode() + b"\0")
        for file in _files(self.folder):
            total.update(f"{file.relative_to(self.folder)}\0".encode())
            total.update(hashlib.sha256(file.read_bytes()).digest())
        return total.hexdigest()

    def copy_package(self, folder: Path) -> Path:
        """Another copy of the package alone, anew; gives the folder to put on the path."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder / "numaproof", folder / "numaproof")
        return folder


_TOOLS = ("cosmic-ray", "hypothesis", "pytest", "msgspec")


def lay_out(sources: Path, folder: Path) -> SourceTree:
    """Copies the installed package and the tests of the source tree into a new folder.

    The copy is compiled with the hashes of its files, so that a mutated file is always noticed.

    Raises:
        SourceTreeError: the package is installed in a way that leaves no folder to copy.
    """
    spec = util.find_spec("numaproof")
    places = list(spec.submodule_search_locations or ()) if spec else []
    installed = [sources.joinpath(place) for place in places]
    if len(installed) != 1 or not (installed[0] / "reference" / "node.py").is_file():
        raise SourceTreeError(
            "numaproof is not installed from a wheel; `tox run -e mutation` does it"
        )
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(installed[0], folder / "numaproof", ignore=_LEFT_OUT)
    for name in _TESTS:
        source, target = sources / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=_LEFT_OUT)
        else:
            shutil.copyfile(source, target)
    checked = py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(folder / "numaproof", quiet=1, invalidation_mode=checked)
    return SourceTree(folder)


def _files(folder: Path) -> Iterator[Path]:
    return (
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    )
