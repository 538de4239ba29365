"""The cache between commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.cases.schema import Case
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.workdir import cache

if TYPE_CHECKING:
    from pathlib import Path

KEY = cache.digest(["workdir"], [b"cases"])
CASES = loading.bundled_cases()
KIND = tuple[Case, ...]


@pytest.fixture(autouse=True)
def cache_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "numaproof" / "cases.msgpack"


def test_a_value_round_trips() -> None:
    assert cache.read("cases", KEY, KIND) is None
    cache.write("cases", KEY, CASES)
    assert cache.read("cases", KEY, KIND) == CASES


@pytest.mark.parametrize("other", [(["workdir"], [b"others"]), (["inputs"], [b"cases"])])
def test_a_value_from_other_files_or_code_is_ignored(
    other: tuple[list[str], list[bytes]],
) -> None:
    cache.write("cases", cache.digest(*other), CASES)
    assert cache.read("cases", KEY, KIND) is None


@pytest.mark.parametrize("damage", [b"", KEY, KEY + b"\x91\xc1"])
def test_a_damaged_file_counts_as_missing(cache_file: Path, damage: bytes) -> None:
    cache.write("cases", KEY, CASES)
    cache_file.write_bytes(damage)
    assert cache.read("cases", KEY, KIND) is None


def test_a_full_disk_disables_the_cache(cache_file: Path) -> None:
    cache_file.parent.write_bytes(b"a file in the place of the folder")
    cache.write("cases", KEY, CASES)
    assert cache.read("cases", KEY, KIND) is None


@pytest.mark.parametrize(("name", "is_cached"), [("vm-1-cpu", True), ("my-own", False)])
def test_only_bundled_machines_are_cached(cache_file: Path, name: str, is_cached: bool) -> None:  # noqa: FBT001
    profile = msgspec.structs.replace(fakesys.load_profile("vm-1-cpu"), name=name)
    for _ in range(2):
        info = ProfileMachine(profile, cache_file.parent).info
        assert info is not None
        assert info.num_cores == 1
    assert cache_file.with_name(f"machine-{name}.msgpack").exists() == is_cached
