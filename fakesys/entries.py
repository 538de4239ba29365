"""The entries of a tree."""

from dataclasses import dataclass

SYSTEM = "sys/devices/system"
CPU = f"{SYSTEM}/cpu"
NODE = f"{SYSTEM}/node"
KERNEL = "sys/kernel"


@dataclass(frozen=True, slots=True)
class Symlink:
    """A symbolic link; `target` is relative to the link's directory."""

    target: str


@dataclass(frozen=True, slots=True)
class Directory:
    """An empty directory."""


Entry = bytes | Symlink | Directory


def line(value: object) -> bytes:
    """Formats a value as the kernel writes it to a file, with a newline."""
    return f"{value}\n".encode()


ID_FILES = {
    "socket": "physical_package_id",
    "die": "die_id",
    "cluster": "cluster_id",
    "core_id": "core_id",
    "book": "book_id",
    "drawer": "drawer_id",
}
"""The files in a CPU's `topology` directory, by id."""

ACCESS_FILES = ("read_bandwidth", "read_latency", "write_bandwidth", "write_latency")
"""The files in a node's `accessN/initiators` directory."""

CACHE_FILES = {
    "level": "level",
    "type": "type",
    "line": "coherency_line_size",
    "ways": "ways_of_associativity",
    "sets": "number_of_sets",
}
"""The files in a cache's directory for the properties of its kind, except the size."""
