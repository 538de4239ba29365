"""Starts the kubelet in a mount namespace of its own: `python -m numaproof.kubelet.launch`.

Arguments: the machine's tree, the state directory, the run's folder, and the kubelet's command
line. The tree's files lie over the host's, and the state directory over `/var/lib/kubelet`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from numaproof.kubelet import namespaces

STATE_DIR = Path("/var/lib/kubelet")


def main() -> None:
    """Mounts, and becomes the kubelet."""
    tree, state, folder, *command = sys.argv[1:]
    namespaces.own_mounts()
    namespaces.make_read_only()
    # The host's own kubelet, if there is one, is hidden.
    namespaces.hide(STATE_DIR.parent, Path(tree), Path(state), Path(command[0]))
    STATE_DIR.mkdir()
    namespaces.writable(Path(state), STATE_DIR)
    # The host's kernel log is not the kubelet's to read, nor may it without privileges.
    namespaces.bind(Path("/dev/null"), Path("/dev/kmsg"))
    namespaces.writable(Path(folder) / "log", Path("/var/log"))
    namespaces.writable(Path(folder), Path(folder))
    namespaces.show_machine(Path(tree), Path(folder))
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
