"""Loading profiles from files, and writing them as text."""

import os
from pathlib import Path
from typing import Any

import msgspec
import yaml

from numaproof import fixtures
from numaproof.fakesys.layout import lay_out
from numaproof.fakesys.machine import ProfileError
from numaproof.fakesys.proc_files import cpuinfo
from numaproof.fakesys.profile import Profile
from numaproof.fakesys.tree import build_tree
from numaproof.inputs.documents import Document, DocumentError, load
from numaproof.inputs.typed import convert


def bundled_profiles() -> tuple[str, ...]:
    """Returns the names of the bundled machine profiles in alphabetical order."""
    return tuple(sorted(fixtures.machine_files()))


def load_profile(source: str | os.PathLike[str]) -> Profile:
    """Loads and checks a bundled profile or a file.

    Args:
        source: the name of a bundled profile if it is a ``str`` without ``/`` or ``.yaml``;
            otherwise a path.

    Raises:
        DocumentError: the profile does not exist or is invalid.
    """
    text = os.fspath(source)
    if isinstance(source, str) and "/" not in text and not text.endswith((".yaml", ".yml")):
        files = fixtures.machine_files()
        if text not in files:
            known = ", ".join(sorted(files))
            raise DocumentError(text, 0, "", "no such bundled machine", f"choose from {known}")
        content = files[text].read_text(encoding="utf-8")
        return parse_profile(load(content, file=f"{text}.yaml"))
    return parse_profile(load(Path(text), file=text))


def parse_profile(document: Document) -> Profile:
    """Converts a document to a profile and checks it.

    Raises:
        DocumentError: the document has an unknown key or a wrong type, or contradicts itself.
    """
    profile = convert(document, Profile)
    try:
        check_profile(profile)
    except ProfileError as error:
        raise document.error(error.path, error.message, error.fix) from None
    return profile


def check_profile(profile: Profile) -> None:
    """Checks that a tree can be built from the profile.

    Raises:
        ProfileError: no tree can be built.
    """
    if profile.lacks or profile.files or profile.trailing_nul:
        build_tree(profile)
    else:
        cpuinfo(profile, lay_out(profile))


class _Dumper(yaml.SafeDumper):
    """Writes the profile itself in block style and rows in flow style."""


def _row(dumper: yaml.SafeDumper, row: "_Row") -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", row, flow_style=True)


class _Row(dict[str, Any]):
    """A mapping that is written on one line."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = '"' if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(_Row, _row)
_Dumper.add_representer(str, _text)


def dump_profile(profile: Profile) -> str:
    """Returns the profile as YAML for `load_profile`; equal profiles give equal text."""
    data = msgspec.to_builtins(profile)
    for field in ("cpus", "nodes", "caches"):
        if field in data:
            data[field] = [_Row(row) for row in data[field]]
    if isinstance(data.get("distances"), dict):
        data["distances"] = _Row(data["distances"])
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
