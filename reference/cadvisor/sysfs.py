"""The trees ``/sys`` and ``/proc``, under any root, from which a machine is discovered.

Only this part of discovery touches files. Paths are strings that begin with ``/sys`` or ``/proc``
regardless of the root, because the kubelet's messages contain them.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from numaproof.reference.golang.text import WHITE_SPACE, printable

if TYPE_CHECKING:
    from numaproof.workdir.trees import Root

CPUS = "/sys/devices/system/cpu"
NODES = "/sys/devices/system/node"


class DiscoveryError(Exception):
    """The tree does not describe a machine; the message is cAdvisor's."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class UnreadablePathError(DiscoveryError):
    """A file or folder is unreadable; `missing` is true if it does not exist."""

    def __init__(self, path: str, error: OSError) -> None:
        step = "read" if error.errno == errno.EISDIR else "open"
        cause = os.strerror(error.errno or errno.EIO)
        super().__init__(f"{step} {path}: {cause[0].lower()}{cause[1:]}")
        self.missing = error.errno == errno.ENOENT


class SysTree:
    """The files below `root`, a folder with ``sys`` and ``proc``. Each file is read only once."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._contents: dict[str, str] = {}

    def read(self, path: str) -> str:
        """Returns the text of a file; bytes that are not UTF-8 become lone surrogates.

        Raises:
            UnreadablePathError: the file is missing or unreadable.
        """
        text = self._contents.get(path)
        if text is None:
            try:
                content = (self._root / path[1:]).read_bytes()
            except OSError as error:
                raise UnreadablePathError(path, error) from None
            text = self._contents[path] = content.decode("utf-8", "surrogateescape")
        return text

    def read_trimmed(self, path: str) -> str:
        """Returns the text of a file without surrounding white space.

        Raises:
            UnreadablePathError: the file is missing or unreadable.
        """
        return self.read(path).strip(WHITE_SPACE)

    def names(self, path: str) -> list[str]:
        """Returns the names in a folder in byte order (``cpu10`` before ``cpu2``).

        Raises:
            UnreadablePathError: the folder is missing, unreadable or not a folder.
        """
        try:
            return sorted((entry.name for entry in (self._root / path[1:]).iterdir()), key=_bytes)
        except OSError as error:
            raise UnreadablePathError(path, error) from None

    def numbered_names(self, path: str, prefix: str) -> list[str]:
        """Returns the names in a folder that begin with `prefix` and end in a digit, in byte order.

        Each of them counts as a node or a CPU. An unreadable folder counts as empty.
        """
        try:
            names = self.names(path)
        except UnreadablePathError:
            return []
        return [name for name in names if name.startswith(prefix) and name[-1] in "0123456789"]


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
