"""The keys of patterns in the form ``KEY:GLOB``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

KEYS: Mapping[str, str] = {
    "id": "case ids",
    "requirement": "ids of the requirements that a case checks",
    "area": "areas of these requirements",
    "document": "documents that state them, by key or title",
    "feature": "features that a bundled case needs, as `numaproof features` lists them",
    "defect": "named defects that make the kubelet fail a case",
}
"""The keys, with what they match."""
