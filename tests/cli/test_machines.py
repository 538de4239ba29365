"""`numaproof profile` and `numaproof discover`."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numaproof import fakesys

Command = Callable[..., Any]

PROFILE = fakesys.dump_profile(fakesys.load_profile("laptop-4c8t"))


def test_the_list_names_every_bundled_machine(command: Command) -> None:
    ended = command("profile", "list")
    assert ended.code == 0
    assert [line.split()[0] for line in ended.out.splitlines()] == list(fakesys.bundled_profiles())
    rows = command("profile", "list", "--json").json()
    assert [row["name"] for row in rows] == list(fakesys.bundled_profiles())
    assert all(row["title"] for row in rows)


def test_a_machine_is_shown_with_its_nodes_and_a_drawing(command: Command) -> None:
    ended = command("profile", "show", "xeon-gold-6430-2s-cxl")
    assert ended.code == 0
    assert "CPUs" in ended.out
    assert "distances" in ended.out
    assert "none" in ended.out
    assert "Socket 1" in ended.out
    assert "\x1b" not in ended.out


def test_a_tree_is_written_and_discovered_as_the_profile_says(command: Command) -> None:
    for name in ("tree", "tree.tar", "tree.tar.gz", "tree.tar.xz"):
        assert command("profile", "tree", "laptop-4c8t", "--to", name).code == 0
        found = command("discover", name, "--json")
        assert found.code == 0
        assert found.json()["num_cores"] == 8
    assert Path("tree/proc/cpuinfo").is_file()
    assert "8 CPUs, 4 cores" in command("discover", "tree").out


def test_an_existing_tree_is_not_overwritten_and_exits_with_2(command: Command) -> None:
    Path("tree").mkdir()
    Path("tree/file").write_text("")
    ended = command("profile", "tree", "laptop-4c8t", "--to", "tree")
    assert ended.code == 2
    assert "tree" in ended.err


def test_a_capture_of_a_tree_is_a_profile_that_validates(command: Command) -> None:
    command("profile", "tree", "laptop-4c8t", "--to", "tree.tar")
    printed = command("profile", "capture", "tree.tar", "--name", "mine")
    assert printed.code == 0
    ended = command("profile", "capture", "tree.tar", "--name", "mine", "--to", "mine.yaml")
    assert ended.code == 0
    assert Path("mine.yaml").read_text() == printed.out
    ended = command("profile", "validate", "mine.yaml")
    assert ended.code == 0
    assert "mine.yaml: mine is valid, with 8 CPUs" in ended.out


def test_a_tree_that_no_profile_describes_is_reported(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("profile", "tree", "laptop-4c8t", "--to", "tree")
    other = fakesys.load_profile("vm-1-cpu")
    monkeypatch.setattr(fakesys, "capture", lambda *_: other)
    ended = command("profile", "capture", "tree", "--name", "mine")
    assert ended.code == 2
    assert "no profile describes tree so that discovery" in ended.err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (PROFILE + "color: red\n", "unknown key 'color'"),
        (PROFILE.replace("title:", "titel:"), "unknown key 'titel' (did you mean 'title'?)"),
        (PROFILE.replace("title: ", "title: [1] #"), "title: expected `str`"),
        (PROFILE + "cpus:\n  9:\n    core: 0\n", "mine.yaml:"),
        (PROFILE + "nodes:\n- id: 9\n  cpus: 0-77\n", "mine.yaml:"),
        ("a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "mine.yaml:2: YAML aliases are not allowed"),
        ("name: 1 2\n\tx", "mine.yaml:"),
        ("", "mine.yaml"),
    ],
)
def test_a_wrong_profile_exits_with_2_and_names_file_line_and_fix(
    command: Command, text: str, complaint: str
) -> None:
    Path("mine.yaml").write_text(text)
    ended = command("profile", "validate", "mine.yaml")
    assert ended.code == 2
    assert complaint in ended.err
    assert ended.out == ""
    assert command("check", "--machine", "mine.yaml").code == 2


@pytest.mark.parametrize("name", ["../evil", "/etc/evil"])
def test_a_malicious_tar_is_2(command: Command, name: str) -> None:
    with tarfile.open("evil.tar", "w") as archive:
        member = tarfile.TarInfo(name)
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    for args in (("discover", "evil.tar"), ("profile", "capture", "evil.tar", "--name", "x")):
        ended = command(*args)
        assert ended.code == 2
        assert "evil" in ended.err


def test_a_place_without_a_machine_is_2(command: Command) -> None:
    Path("empty").mkdir()
    assert command("discover", "empty").code == 2
    assert command("discover", "lost").code == 2
    assert command("profile", "show", "lost").code == 2


def test_a_machine_without_cpus_is_shown_too(command: Command) -> None:
    assert command("profile", "show", "arm64-no-core-ids").code == 0


def test_discovery_follows_the_release(command: Command) -> None:
    command("profile", "tree", "laptop-4c8t", "--to", "tree")
    ended = command("discover", "tree", "--kubernetes", "1.33", "--json")
    assert json.loads(ended.out)["num_cores"] == 8
    assert command("discover", "tree", "--kubernetes", "1.1").code == 2


@pytest.mark.parametrize(
    ("args", "name"),
    [
        (("My Server.tar",), "my-server"),
        (("My Server.tar", "--to", "Rack 7.yaml"), "rack-7"),
        (("My Server.tar", "--name", "mine"), "mine"),
    ],
)
def test_a_captured_profile_is_named_after_what_is_known(
    command: Command, args: tuple[str, ...], name: str
) -> None:
    command("profile", "tree", "laptop-4c8t", "--to", "My Server.tar")
    ended = command("profile", "capture", *args)
    text = Path("Rack 7.yaml").read_text(encoding="utf-8") if "--to" in args else ended.out
    assert text.startswith(f"name: {name}\n")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("tree.zip", "unknown archive type; use .tar"), ("nowhere/tree.tar", "is not a folder")],
)
def test_a_tree_goes_only_where_and_how_it_can(command: Command, name: str, complaint: str) -> None:
    ended = command("profile", "tree", "laptop-4c8t", "--to", name)
    assert ended.code == 2
    assert complaint in ended.err
    assert not Path(name).exists()


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("sys/x", "t.tar: no CPUs found in sys"), ("sys/devices/system/cpu", "t.tar: no CPUs")],
)
def test_what_an_archive_lacks_is_said_of_the_archive(
    command: Command, name: str, complaint: str
) -> None:
    with tarfile.open("t.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    ended = command("profile", "capture", "t.tar")
    assert ended.code == 2
    assert f"numaproof: {complaint}" in ended.err


def test_a_capture_replaces_no_file(command: Command) -> None:
    command("profile", "tree", "laptop-4c8t", "--to", "tree.tar")
    Path("mine.yaml").write_text("edited by hand", encoding="utf-8")
    ended = command("profile", "capture", "tree.tar", "--to", "mine.yaml")
    assert ended.code == 2
    assert "mine.yaml already exists" in ended.err
    assert Path("mine.yaml").read_text(encoding="utf-8") == "edited by hand"


def test_every_file_is_validated_also_after_a_wrong_one(command: Command) -> None:
    Path("bad.yaml").write_text(PROFILE + "colour: red\n", encoding="utf-8")
    Path("good.yaml").write_text(PROFILE, encoding="utf-8")
    ended = command("profile", "validate", "bad.yaml", "good.yaml", "bad.yaml")
    assert ended.code == 2
    assert "good.yaml: laptop-4c8t is valid" in ended.out
    assert ended.err.count("unknown key 'colour'") == 2
    assert "2 of 3 files" in ended.err


def test_the_distances_of_many_nodes_are_counted(command: Command) -> None:
    shape = "{sockets: 1, cores_per_socket: %d, threads_per_core: 1, nodes: %d}"
    for nodes, shown in ((64, "10 12 12"), (65, "1x10, 64x12")):
        text = "name: big\ntitle: t\nsource: s\narchitecture: x86_64\n"
        rows = (
            f"topology: {shape % (nodes, nodes)}\nnodes: [{{nodes: 0-{nodes - 1}, memory: 1Gi}}]\n"
        )
        Path("big.yaml").write_text(text + rows, encoding="utf-8")
        ended = command("profile", "show", "big.yaml")
        assert ended.code == 0
        assert shown in " ".join(ended.out.split()), nodes
