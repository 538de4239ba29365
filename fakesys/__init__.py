"""Machine profiles, and the `/sys` and `/proc` trees that they describe.

`load_profile` reads a profile (`docs/profiles.md`), and `build_tree` turns it into a tree, which
can be written to pyfakefs, a directory or a tar file. `capture` creates a profile from a live
machine or a tree (`open_tree`).
"""

from numaproof.fakesys.archive import (
    TreeError,
    is_archive,
    is_tree,
    open_tree,
    read_some,
    unpack_some,
)
from numaproof.fakesys.capture import capture
from numaproof.fakesys.damage import require_intact
from numaproof.fakesys.entries import Directory, Entry, Symlink
from numaproof.fakesys.layout import lay_out
from numaproof.fakesys.loading import (
    bundled_profiles,
    check_profile,
    dump_profile,
    load_profile,
    parse_profile,
)
from numaproof.fakesys.machine import Machine, ProfileError
from numaproof.fakesys.profile import Profile, profile_schema
from numaproof.fakesys.reading import TreePath
from numaproof.fakesys.tree import Tree, build_tree
from numaproof.fakesys.writers import WriteError, write_directory, write_fake, write_tar
from numaproof.inputs.documents import DocumentError, load

__all__ = [
    "Directory",
    "DocumentError",
    "Entry",
    "Machine",
    "Profile",
    "ProfileError",
    "Symlink",
    "Tree",
    "TreeError",
    "TreePath",
    "WriteError",
    "build_tree",
    "bundled_profiles",
    "capture",
    "check_profile",
    "dump_profile",
    "is_archive",
    "is_tree",
    "lay_out",
    "load",
    "load_profile",
    "open_tree",
    "parse_profile",
    "profile_schema",
    "read_some",
    "require_intact",
    "unpack_some",
    "write_directory",
    "write_fake",
    "write_tar",
]
