"""The program that writes the reference's table of the kubelet's flags."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from numaproof.reference.config import flags

SCRIPT = Path(__file__).parents[2] / "adapters" / "kubelet" / "flags.py"
TABLE = Path(flags.__file__).with_name("flags.txt")


def program(folder: Path, release: str, names: list[str]) -> str:
    """Creates a program that prints a release's flags like an adapter."""
    path = folder / release
    printed = json.dumps({"kubernetes": release, "flags": names})
    path.write_text(f"#!/bin/sh\n[ $1 = -flags ] && cat <<'END'\n{printed}\nEND\n")
    path.chmod(0o755)
    return str(path)


def write_table(folder: Path, *programs: str) -> str:
    table = Path(shutil.copy(TABLE, folder / "flags.txt"))
    subprocess.run((sys.executable, str(SCRIPT), str(table), *programs), check=True)
    return table.read_text(encoding="ascii")


def test_regenerating_the_table_changes_nothing(tmp_path: Path) -> None:
    programs = [program(tmp_path, release, [*names]) for release, names in flags.table().items()]
    assert write_table(tmp_path, *programs) == TABLE.read_text(encoding="ascii")


def test_a_new_release_gets_a_column(tmp_path: Path) -> None:
    text = write_table(tmp_path, program(tmp_path, "1.99", ["cpu-manager-policy", "brand-new"]))
    cells = {line.split()[0]: line.split()[1:] for line in text.splitlines()[3:]}
    assert cells["flag"][-2:] == ["1.37", "1.99"]
    assert cells["cpu-manager-policy"] == ["x"] * 9
    assert cells["brand-new"] == ["."] * 8 + ["x"]
    assert cells["reserved-cpus"][-1] == "."
