"""Commands of scripts that change a kubelet's configuration file in place.

They depend on a file that isn't there, so they are named instead of read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from numaproof.reference.config.fields import DECODED

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMAND = re.compile(r"^(?![ \t]*#)(?:\\\n|[^\n])+", re.MULTILINE)
_EDITS = re.compile(
    r"\b(?:sed|yq|perl)\b.*\s-\w*i|\b(?:jq|yq)\b.*(?:>|\btee\b|\bsponge\b)", re.DOTALL
)
_CONFIGURATION = re.compile(
    rf"kubelet[\w./-]*\.(?:conf|json|ya?ml)\b|\$\{{?KUBELET_CONFIG|\b(?:{'|'.join(DECODED)})\b"
)
_MAX_COMMAND = 4096
_MAX_SHOWN = 60


def notes(text: str, file: str) -> Iterator[str]:
    """Yields a note for each command in a text that changes a kubelet's configuration file."""
    for found in _COMMAND.finditer(text):
        if len(found[0]) > _MAX_COMMAND:
            continue  # a document on a single line
        command = " ".join(found[0].replace("\\\n", " ").split())
        if _EDITS.search(command) and _CONFIGURATION.search(command):
            line = text.count("\n", 0, found.start()) + 1
            shown = command if len(command) <= _MAX_SHOWN else f"{command[:_MAX_SHOWN]}..."
            yield f"{file}:{line}: left out a command that changes a file on the node: {shown}"
