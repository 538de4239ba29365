"""The bundled cases as they were last parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.cases import cache, loading

if TYPE_CHECKING:
    from pathlib import Path

KEY = cache.digest([b"cases"])
CASES = loading.bundled_cases()[:2]


@pytest.fixture(autouse=True)
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "numaproof" / "cases.msgpack"


def test_cases_are_read_as_they_were_written() -> None:
    assert cache.read(KEY) is None
    cache.write(KEY, CASES)
    assert cache.read(KEY) == CASES


def test_cases_of_other_files_are_not_read() -> None:
    cache.write(cache.digest([b"other cases"]), CASES)
    assert cache.read(KEY) is None


def test_all_bundled_cases_survive_the_cache() -> None:
    cache.write(KEY, loading.bundled_cases())
    assert cache.read(KEY) == loading.bundled_cases()


@pytest.mark.parametrize("damage", [b"", KEY, KEY + b"\x91\xc1"])
def test_a_damaged_file_counts_as_none(saved: Path, damage: bytes) -> None:
    cache.write(KEY, CASES)
    saved.write_bytes(damage)
    assert cache.read(KEY) is None


def test_without_room_nothing_is_written(saved: Path) -> None:
    saved.parent.parent.joinpath("numaproof").write_bytes(b"a file in the place of the folder")
    cache.write(KEY, CASES)
    assert cache.read(KEY) is None
