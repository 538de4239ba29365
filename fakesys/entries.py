"""What a tree is made of."""

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
    """A directory with nothing in it."""


Entry = bytes | Symlink | Directory


def line(value: object) -> bytes:
    """A value as the kernel's small files hold it."""
    return f"{value}\n".encode()
