"""The project's own source files in a checkout."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("NUMAPROOF_SHARED", ROOT.parent / "shared"))
"""Documents, recordings and machines that tests read; tests are skipped without them."""
PACKAGE = ROOT / "src/numaproof"


def folders() -> frozenset[str]:
    """The top-level folders that are packages of the project."""
    return frozenset(link.name for link in PACKAGE.iterdir() if link.is_symlink())


def modules() -> dict[str, Path]:
    """Every module of the project by name, except for the templates of `numaproof init`."""
    files = [*PACKAGE.glob("*.py")]
    for folder in sorted(folders()):
        files += [one for one in sorted((ROOT / folder).rglob("*.py")) if not _is_template(one)]
    return {_name(file): file for file in files}


def _is_template(file: Path) -> bool:
    return file.is_relative_to(ROOT / "cli/templates")


def _name(file: Path) -> str:
    inside = file.relative_to(PACKAGE if file.is_relative_to(PACKAGE) else ROOT).with_suffix("")
    parts = [part for part in inside.parts if part != "__init__"]
    return ".".join(["numaproof", *parts])
