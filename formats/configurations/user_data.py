"""User data of cloud machines, as a MIME message of several parts.

(amazon-eks-ami, "nodeadm: Merging multiple configuration objects"; cloud-init documentation,
"User-data formats: MIME multi-part archive".)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOUNDARY = re.compile(
    r"""^content-type:\s*multipart/[^\n]*boundary="?([^"\n;]+)""", re.IGNORECASE | re.MULTILINE
)


def is_user_data(text: str) -> bool:
    """Whether a text is a MIME message of several parts."""
    return _BOUNDARY.search(text) is not None


def message_parts(text: str) -> Iterator[str]:
    """Yields the parts, each after as many empty lines as precede it in the text."""
    boundary = _BOUNDARY.search(text)
    assert boundary is not None
    mark = f"--{boundary[1].strip()}"
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if line.rstrip() in (mark, f"{mark}--")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        body = next((n for n in range(start + 1, end) if not lines[n].strip()), end)
        if any(line.strip() for line in lines[body:end]):
            yield "\n" * body + "\n".join(lines[body:end])
