"""The program that writes the table of configuration and pod fields."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from numaproof.protocol.releases import RELEASES
from numaproof.simulation import fields

SCRIPT = Path(__file__).parents[2] / "adapters" / "kubelet" / "fields.py"
TABLE = Path(fields.__file__).with_name("fields.txt")

Types = dict[str, dict[str, str]]


def program(folder: Path, release: str, types: Types) -> str:
    """Creates a program that prints a release's fields like the built one."""
    path = folder / release
    printed = json.dumps({"kubernetes": release, "types": types})
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{printed}\nEND\n")
    path.chmod(0o755)
    return str(path)


def write_table(folder: Path, *programs: str) -> str:
    table = Path(shutil.copy(TABLE, folder / "fields.txt"))
    subprocess.run((sys.executable, str(SCRIPT), str(table), *programs), check=True)
    return table.read_text(encoding="ascii")


def test_regenerating_the_table_changes_nothing(tmp_path: Path) -> None:
    assert write_table(tmp_path) == TABLE.read_text(encoding="ascii")


def test_the_table_includes_every_release() -> None:
    text = TABLE.read_text(encoding="ascii")
    assert f"\nreleases {' '.join(RELEASES)}\n" in text


def test_a_new_release_has_its_own_fields(tmp_path: Path) -> None:
    types = {"Container": {"name": "string", "brandNew": "[]EnvVar"}}
    lines = write_table(tmp_path, program(tmp_path, "1.99", types)).splitlines()
    container = lines[
        lines.index("Container") + 1 : lines.index("ContainerExtendedResourceRequest")
    ]
    assert "  name string" in container
    assert "  brandNew []EnvVar 1.99" in container
    assert "  image string 1.30-1.37" in container


def test_the_fields_of_a_known_release_are_replaced(tmp_path: Path) -> None:
    lines = write_table(tmp_path, program(tmp_path, "1.35", {"Pod": {"spec": "Spec"}})).splitlines()
    assert "  image string 1.30-1.34,1.36-1.37" in lines
    assert "  spec Spec 1.35" in lines
