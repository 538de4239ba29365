"""Checkpoint files damaged by the harness; `tampering.yaml` has the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builders.tables import Table
from numaproof.conformance.cases import checkpoints
from numaproof.conformance.execution.session import tamper
from numaproof.workdir.state_directory import StateDirectory

if TYPE_CHECKING:
    from pathlib import Path

DAMAGE = Table(__file__, "tampering.yaml")
FIELDS = {"policyName": "static", "defaultCpuSet": "0-7"}
FILES = {
    "one part": checkpoints.text(FIELDS),
    "two parts": checkpoints.text({**FIELDS, "data": FIELDS}),
    "empty": "",
}


@DAMAGE
def test_a_checkpoint_is_damaged_as_requested(row: dict[str, Any], tmp_path: Path) -> None:
    said = {}
    for name, text in (*FILES.items(), ("missing", None)):
        file = tmp_path / name
        if text is not None:
            file.write_text(text)
        tamper(StateDirectory(tmp_path), name, row["what"], "new")
        after = file.read_bytes().decode("latin-1") if file.exists() else None
        said[name] = "the same" if after == text else after
    DAMAGE.check(row, said)
