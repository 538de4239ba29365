"""`numaproof profile show`: drawings as files, and level 2 caches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from click.testing import CliRunner

from numaproof.cli.profiles import profile

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from conftest import Command


def run(*arguments: object) -> Result:
    return CliRunner().invoke(profile, [str(one) for one in arguments])


def test_a_drawing_can_be_written_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "machine.svg"
    shown = run("show", "laptop-4c8t", "--out", file)
    assert shown.exit_code == 0
    assert shown.stdout.endswith(f"wrote {file}\n")
    texts = [one.text for one in ET.XML(file.read_text()).iter("{http://www.w3.org/2000/svg}text")]
    assert (texts[0] or "").startswith("laptop-4c8t: ")


def test_another_extension_is_refused(tmp_path: Path) -> None:
    shown = run("show", "laptop-4c8t", "--out", tmp_path / "machine.png")
    assert shown.exit_code == 2
    assert "expected a name ending with .svg" in shown.stderr


def test_level_2_caches_of_a_hybrid_machine_are_drawn(tmp_path: Path) -> None:
    shown = run("show", "core-i7-1370p", "--l2")
    assert "14 cores (6 P, 8 E), 20 CPUs" in shown.stdout
    assert "L2 1.2 MiB per core" in shown.stdout
    assert re.search(r"L2 2 MiB +12│ 13│ 14│ 15\n", shown.stdout)
    tree = tmp_path / "tree.tar"
    assert run("tree", "core-i7-1370p", "--out", tree).exit_code == 0
    from_tree = run("show", tree, "--l2").stdout
    assert from_tree.partition("Machine")[2] == shown.stdout.partition("Machine")[2]


def test_level_2_caches_must_be_described(tmp_path: Path) -> None:
    text = tmp_path / "numactl.txt"
    text.write_text(
        "available: 1 nodes (0)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 16000 MB\n"
        "node 0 free: 900 MB\nnode distances:\nnode   0\n  0:  10\n"
    )
    shown = run("show", text, "--l2")
    assert shown.exit_code == 2
    assert "doesn't show level 2 caches; use a tree" in shown.stderr
    without = run("show", "vm-arm64-no-caches", "--l2")
    assert "vm-arm64-no-caches has no files about level 2 caches" in without.stderr


def test_cores_are_counted_once_and_cadvisors_number_is_named_as_such(command: Command) -> None:
    ended = command("profile", "show", "xeon-gold-6230-2s")
    assert "80 CPUs, 40 cores (20 as counted by cAdvisor), 2 sockets; " in ended.out
    assert "24 cores, 1 socket; " in command("profile", "show", "epyc-7402p-nps2").out
