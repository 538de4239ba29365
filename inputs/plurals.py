"""Counts with their nouns."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """A count and its noun, such as ``1 core`` or ``8 cores``.

    Args:
        count: how many.
        noun: the singular, which takes an ``s``.
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
