"""Sockets in folders with long paths have short names."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from numaproof.kubelet.sockets import short_path


def test_a_folder_with_a_long_path_has_a_short_one(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        with pytest.raises(OSError, match="path too long"):
            server.bind(str(folder / "x.sock"))
        with short_path(folder) as name:
            server.bind(f"{name}/x.sock")
        assert (folder / "x.sock").is_socket()
    assert not Path(name).exists()
