"""The ids of elements on a run's page.

An id is derived from names only, never from positions, so that a link to it also works on the page
of a later run.
"""

from __future__ import annotations

import hashlib
import re

_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 80


def anchor(kind: str, *names: str) -> str:
    """Returns the id of what has these names, such as ``case/static-exclusive``.

    If a name is long or has characters that need quoting in an address, the id ends with a digest
    of the names, so that different names have different ids.
    """
    words = [_OTHER.sub("-", name)[:_LONGEST].strip("-") for name in names]
    if words != [*names]:
        words.append(hashlib.sha256("\0".join(names).encode(errors="replace")).hexdigest()[:8])
    return "/".join((kind, *words))
