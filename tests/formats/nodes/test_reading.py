"""A report's configuration and state are found, whatever its layout."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

import pytest

from numaproof.fakesys import TreeError
from numaproof.formats.nodes.reading import CapturedNode, open_node
from numaproof.inputs.errors import DocumentError

if TYPE_CHECKING:
    from pathlib import Path

NODE = "kind: Node\nmetadata: {name: w1}\nstatus: {nodeInfo: {kubeletVersion: v1.34.1}}\n"


def write(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def read(root: Path, node: str = "") -> CapturedNode:
    with open_node(str(root), node) as found:
        return found


def test_a_copy_of_the_kubelets_folder_has_state_and_configuration(tmp_path: Path) -> None:
    folder = "var/lib/kubelet"
    write(
        tmp_path,
        **{
            f"{folder}/device-plugins/kubelet_internal_checkpoint": "{}",
            f"{folder}/config.yaml": "kind: KubeletConfiguration\n",
        },
    )
    found = read(tmp_path)
    assert found.format == "a copy of a node's files"
    assert found.state is not None
    assert found.state.path == tmp_path / folder
    assert [source.path.name for source in found.configuration] == ["config.yaml"]


def test_the_state_in_a_must_gather_is_that_of_the_node(tmp_path: Path) -> None:
    nodes = "cluster-scoped-resources/core/nodes"
    write(
        tmp_path,
        **{
            f"x/{nodes}/w1.yaml": NODE,
            f"x/{nodes}/w2.yaml": NODE,
            "x/nodes/w1/cpu_manager_state": "1",
            "x/nodes/w2/cpu_manager_state": "2",
        },
    )
    found = read(tmp_path, "w2")
    assert found.state is not None
    assert found.state.path == tmp_path / "x/nodes/w2"
    assert found.machine == f"{tmp_path}#w2"
    assert (found.kubernetes, found.configuration) == ("v1.34.1", ())


def test_an_absent_machine_config_is_named(tmp_path: Path) -> None:
    current = "annotations: {machineconfiguration.openshift.io/currentConfig: rendered-worker-1}"
    node = f"kind: Node\nmetadata: {{name: w1, {current}}}\n"
    write(tmp_path, **{"x/cluster-scoped-resources/core/nodes/w1.yaml": node})
    found = read(tmp_path)
    assert not found.configuration
    message = f"{tmp_path} has no configuration: it lacks the MachineConfig rendered-worker-1,"
    assert found.without_configuration.startswith(message)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("node: x\n", "unknown version None of the format"),
        ("version: 1\n", "missing key 'node'"),
        ("version: 1\nnode: [x]\n", "node: expected `str`"),
        ("{", "collected.yaml"),
    ],
)
def test_a_damaged_record_is_an_error(tmp_path: Path, record: str, message: str) -> None:
    write(tmp_path, **{"collected.yaml": record})
    with pytest.raises(DocumentError, match=message):
        read(tmp_path)


RECORD = "version: 1\nnode: w1\nparts: [node.json, pods.json, tree]\n"
PARTS = {"node.json": "{}", "pods.json": "{}", "tree/proc/meminfo": ""}


@pytest.mark.parametrize("suffix", ["", ".tar"])
@pytest.mark.parametrize("lost", [None, *PARTS])
def test_an_archive_that_lost_a_part_is_an_error(
    tmp_path: Path, suffix: str, lost: str | None
) -> None:
    root = tmp_path / "w1"
    write(root, **{"collected.yaml": RECORD})
    write(root, **{name: text for name, text in PARTS.items() if name != lost})
    if suffix:
        root = tmp_path / f"w1{suffix}"
        with tarfile.open(root, "w") as archive:
            archive.add(tmp_path / "w1", ".")
    if lost is None:
        assert read(root).has_machine
        return
    part = lost.partition("/")[0]
    with pytest.raises(DocumentError, match=rf"{part}: listed but absent"):
        read(root)


def test_a_truncated_archive_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, **{"collected.yaml": RECORD, "pods.json": "{}"})
    file = tmp_path / "w1.tar"
    with tarfile.open(file, "w") as archive:
        archive.add(tmp_path / "collected.yaml", "collected.yaml")
        archive.add(tmp_path / "pods.json", "pods.json")
        boundary = archive.getmember("pods.json").offset
    file.write_bytes(file.read_bytes()[:boundary])
    with pytest.raises(TreeError, match="truncated"):
        read(file)


def test_an_archive_without_a_machine_has_none(tmp_path: Path) -> None:
    write(tmp_path, **{"collected.yaml": "version: 1\nnode: w1\n"})
    assert not read(tmp_path).has_machine


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ("sos_commands/date/date", "sosreports"),
        ("var/lib/kubelet/config.yaml", "copies of a node's files"),
        ("collected.yaml", "archives"),
    ],
)
def test_several_reports_are_not_mixed(tmp_path: Path, file: str, what: str) -> None:
    write(tmp_path, **{f"{name}/{file}": "version: 1\nnode: x\n" for name in ("a/x", "b/y")})
    with pytest.raises(DocumentError, match=f"2 {what}: a/x, b/y") as raised:
        read(tmp_path)
    assert raised.value.fix == f"choose one: {tmp_path}/b/y"
