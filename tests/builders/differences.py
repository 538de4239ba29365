"""Differences in one line, for tables of tests."""

from __future__ import annotations

from numaproof.protocol.mismatch import Mismatch


def in_one_line(text: str) -> str:
    """The text, with any difference in it written as a sentence."""
    found = Mismatch.read(text)
    return f"{found.what}: expected {found.expected}, got {found.got}" if found else text
