"""The program that writes the reference's table of feature gates."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.reference.config import gates

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[..., str]

SCRIPT = Path(__file__).parents[2] / "adapters" / "kubelet" / "gates.py"
TABLE = Path(gates.__file__).with_name("gates.txt")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return Path(shutil.copy(TABLE, tmp_path / "gates.txt"))


@pytest.fixture
def program(tmp_path: Path) -> Write:
    """Creates a program that prints a release's gates like an adapter."""

    def write(release: str, gate_table: dict[str, dict[str, Any]]) -> str:
        path = tmp_path / release
        printed = json.dumps({"kubernetes": release, "gates": gate_table})
        path.write_text(f"#!/bin/sh\n[ $1 = -gates ] && cat <<'END'\n{printed}\nEND\n")
        path.chmod(0o755)
        return str(path)

    return write


def write_table(table: Path, *programs: str) -> list[list[str]]:
    subprocess.run((sys.executable, str(SCRIPT), str(table), *programs), check=True)
    return [line.split() for line in table.read_text(encoding="ascii").splitlines()]


def gate(
    maturity: str, *, default: bool, lock_to_default: bool = False, needs: tuple[str, ...] = ()
) -> Any:
    return {"maturity": maturity, "default": default, "locked": lock_to_default, "needs": needs}


def test_regenerating_the_table_changes_nothing(table: Path, program: Write) -> None:
    programs = [
        program(
            release,
            {
                name: gate(
                    each.maturity,
                    default=each.default,
                    lock_to_default=each.is_locked,
                    needs=each.needs,
                )
                for name, each in known.items()
            },
        )
        for release, known in gates.table().items()
    ]
    write_table(table, *programs)
    assert table.read_bytes() == TABLE.read_bytes()


def test_a_new_release_gets_a_column_and_others_keep_theirs(table: Path, program: Write) -> None:
    before = [line.split() for line in table.read_text(encoding="ascii").splitlines()]
    new = {
        "CPUManagerPolicyAlphaOptions": gate("alpha", default=False),
        "NewGate": gate("beta", default=True, needs=("CPUManagerPolicyAlphaOptions",)),
        "OldGate": gate("deprecated", default=False, lock_to_default=True),
    }
    lines = write_table(table, program("1.99", new))
    width = len(gates.table())
    assert ["gate", *gates.table(), "1.99"] in lines
    assert ["NewGate", *"." * width, "B"] in lines
    assert ["OldGate", *"." * width, "d!"] in lines
    assert ["CPUManagerPolicyAlphaOptions", *"a" * width, "a"] in lines
    assert ["NewGate", "CPUManagerPolicyAlphaOptions", *"." * width, "x"] in lines
    for row in before:
        if row and row[0] != "#" and row[0] not in (*new, "gate"):
            assert [*row, "."] in lines


def test_dependencies_that_are_always_on_are_omitted(table: Path, program: Write) -> None:
    new = {
        "Always": gate("stable", default=True, lock_to_default=True),
        "Never": gate("deprecated", default=False, lock_to_default=True),
        "Newest": gate("alpha", default=False, needs=("Always", "Never")),
    }
    lines = write_table(table, program("1.99", new))
    assert [line[1] for line in lines if line[:1] == ["Newest"] and len(line) > 1][1:] == ["Never"]
