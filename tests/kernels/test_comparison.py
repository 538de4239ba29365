"""The comparison with kernels, on small trees; `tox run -e kernels` boots the kernels."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from kernels import guests
from kernels.comparison import (
    Exemption,
    Exemptions,
    LiteralError,
    compare,
    exemptions,
    read_entries,
    rebuild,
)
from numaproof.fakesys import Symlink, build_tree, load_profile, write_tar

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.fakesys.entries import Entry

CORE_ID = "sys/devices/system/cpu/cpu0/topology/core_id"
LINK = "sys/devices/system/cpu/cpu0/node0"
NOTHING = Exemptions(different=(), absent=())


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    write_tar(build_tree(load_profile("laptop-4c8t")), tmp_path / "tree.tar.gz")
    return tmp_path / "tree.tar.gz"


@pytest.fixture
def entries(archive: Path) -> dict[str, Entry]:
    return read_entries(archive)


def test_a_rebuilt_tree_has_the_captured_files(archive: Path, entries: dict[str, Entry]) -> None:
    exempt = [one for one in exemptions().different if "proc/cpuinfo" in one.files]
    found = compare(entries, rebuild(archive), Exemptions(different=tuple(exempt), absent=()))
    assert not found.unexplained
    assert found.different == ("proc/cpuinfo",)
    assert len(found.equal) == len(entries) - 1


@pytest.mark.parametrize("content", [b"1\n", b"0", Symlink("core_id")])
def test_a_different_file_is_unexplained(entries: dict[str, Entry], content: Entry) -> None:
    found = compare(entries, entries | {CORE_ID: content}, NOTHING)
    assert list(found.unexplained) == [CORE_ID]
    assert found.unexplained[CORE_ID].startswith("the kernel has '0\\n', fakesys ")


def test_a_different_link_is_unexplained(entries: dict[str, Entry]) -> None:
    found = compare(entries, entries | {LINK: Symlink("../node1")}, NOTHING)
    assert found.unexplained == {
        LINK: "the kernel has a link to ../../node/node0, fakesys a link to ../node1"
    }


def test_a_file_that_only_one_side_has_is_unexplained(entries: dict[str, Entry]) -> None:
    fewer = {path: entry for path, entry in entries.items() if path != CORE_ID}
    assert compare(entries, fewer, NOTHING).unexplained == {
        CORE_ID: "not generated; the kernel has '0\\n'"
    }
    assert compare(fewer, entries, NOTHING).unexplained == {
        CORE_ID: "the kernel has no such file; fakesys has '0\\n'"
    }
    exempt = Exemptions(different=(), absent=(Exemption(files=("*/core_id",), why="a test"),))
    assert compare(entries, fewer, exempt).absent == (CORE_ID,)
    assert compare(fewer, entries, exempt).unexplained


def test_some_lines_of_an_exempt_file_must_be_equal() -> None:
    exempt = Exemptions(
        different=(Exemption(files=("proc/*",), why="a test", lines="MemTotal.*"),), absent=()
    )
    kernel: dict[str, Entry] = {"proc/meminfo": b"MemTotal: 5 kB\nMemFree: 4 kB\n"}
    counted: dict[str, Entry] = {"proc/meminfo": b"MemTotal: 5 kB\nMemFree: 3 kB\n"}
    assert compare(kernel, counted, exempt).different == ("proc/meminfo",)
    resized: dict[str, Entry] = {"proc/meminfo": b"MemTotal: 6 kB\nMemFree: 4 kB\n"}
    assert list(compare(kernel, resized, exempt).unexplained) == ["proc/meminfo"]


def test_a_capture_with_literal_files_is_refused(tmp_path: Path) -> None:
    tree = dict(build_tree(load_profile("laptop-4c8t"))) | {CORE_ID: b"zero\n"}
    write_tar(tree, tmp_path / "tree.tar")  # type: ignore[arg-type] # any mapping will do
    with pytest.raises(LiteralError, match=r"describes cpu/cpu0/topology/core_id$"):
        rebuild(tmp_path / "tree.tar")


def test_shapes_have_unique_names_and_enough_variety() -> None:
    shapes = guests.shapes()
    assert len({shape.name for shape in shapes}) == len(shapes)
    counts = Counter(shape.architecture for shape in shapes)
    assert counts["x86_64"] >= 20
    assert counts["arm64"] >= 6


def test_a_missing_kernel_is_named(tmp_path: Path) -> None:
    with pytest.raises(guests.MissingError, match=r"no kernel 6\.1 in .*/amd64/boot$"):
        guests.archive_of(guests.shapes()[0], tmp_path)
