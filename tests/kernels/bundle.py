"""Writes the bundled profiles of booted machines: ``python -m kernels.bundle FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import yaml

from kernels import guests
from numaproof.fakesys import capture, dump_profile, open_tree

if TYPE_CHECKING:
    from numaproof.fakesys.profile import Profile

_LIST = Path(__file__).with_name("bundled.yaml")
_MACHINES = Path(__file__).parents[2] / "fixtures/machines"
_TAGS = {"x86_64": "x86", "arm64": "arm64", "i386": "x86", "arm": "arm"}


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `bundled.yaml` adds to a capture."""

    title: str
    tags: tuple[str, ...]
    memory: tuple[str, ...] = ()


def entries() -> dict[str, Entry]:
    """Returns the entries of `bundled.yaml` by shape."""
    return msgspec.convert(yaml.safe_load(_LIST.read_text(encoding="utf-8")), dict[str, Entry])


def profile_of(shape: guests.Shape, entry: Entry, archive: Path) -> Profile:
    """Captures the profile of a shape from the archive of its tree."""
    boot = f", booted with `{shape.boot}`" if shape.boot else ""
    source = f"Linux {shape.kernel} in qemu (`-smp {shape.cpus}`){boot}; captured by tests/kernels."
    with open_tree(archive) as root:
        profile = capture(root, shape.name, title=entry.title, source=source)
    profile = msgspec.structs.replace(profile, tags=(_TAGS[shape.architecture], "vm", *entry.tags))
    if not entry.memory:
        return profile
    if not profile.nodes:
        return msgspec.structs.replace(profile, memory=entry.memory[0])
    rows = zip(profile.nodes, entry.memory, strict=True)
    nodes = tuple(msgspec.structs.replace(row, memory=memory) for row, memory in rows)
    return msgspec.structs.replace(profile, nodes=nodes)


def main() -> None:
    """Writes all profiles; boots the machines of which there are no trees."""
    shapes = {shape.name: shape for shape in guests.shapes()}
    for name, entry in entries().items():
        archive = guests.archive_of(shapes[name], Path(sys.argv[1]))
        text = dump_profile(profile_of(shapes[name], entry, archive))
        (_MACHINES / f"{name}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
