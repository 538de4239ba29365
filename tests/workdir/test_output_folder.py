"""Only one command at a time writes to a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from numaproof.workdir.output_folder import FolderInUseError, held_folder

if TYPE_CHECKING:
    from pathlib import Path

TRY = """
import sys
from pathlib import Path
from numaproof.workdir.output_folder import held_folder
with held_folder(Path(sys.argv[1])):
    print("held")
"""


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    with held_folder(out):
        asked = subprocess.run(
            [sys.executable, "-c", TRY, str(out)], capture_output=True, text=True, check=False
        )
    assert f"{out}: another run is writing to it (process {os.getpid()}); wait" in asked.stderr
    with held_folder(out):
        pass


def test_an_unused_new_folder_is_removed(tmp_path: Path) -> None:
    with held_folder(tmp_path / "new" / "out"):
        assert (tmp_path / "new" / "out").is_dir()
    assert not (tmp_path / "new").exists()
    with held_folder(tmp_path / "new" / "out"):
        (tmp_path / "new" / "file").touch()
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["file"]
    (tmp_path / "mine").mkdir()
    with held_folder(tmp_path / "mine"):
        pass
    assert (tmp_path / "mine").is_dir()


def test_a_folder_is_released_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="wrong"), held_folder(tmp_path):
        raise ValueError("wrong")
    with held_folder(tmp_path), pytest.raises(FolderInUseError), held_folder(tmp_path):
        pass


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError) as error, held_folder(tmp_path / "file" / "out"):
        pass
    assert error.value.filename == str(tmp_path / "file" / "out")
