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
    """A value as the kernel writes it to a file, with a newline."""
    return f"{value}\n".encode()
