"""What all parts of a case file have in common."""

from __future__ import annotations

import msgspec


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a case file: an unknown key is an error."""
