"""A report's configuration and state are found, whatever its layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
