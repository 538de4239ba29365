"""Formats counts and lists of numbers with nouns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sized


def plural(count: int, noun: str) -> str:
    """Formats a count with a noun, such as ``1 core`` or ``8 cores``.

    Args:
        count: the number.
        noun: the singular, to which an ``s`` is added.
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def format_numbers(noun: str, numbers: Sized) -> str:
    """Formats a noun with numbers, such as ``CPU 3``, ``CPUs 0-3`` or ``no CPUs``."""
    if not numbers:
        return f"no {noun}s"
    return f"{noun}{'' if len(numbers) == 1 else 's'} {numbers}"


def format_count(noun: str, numbers: Sized) -> str:
    """Formats the count first, such as ``1 CPU (3)`` or ``0 CPUs``."""
    return plural(len(numbers), noun) + (f" ({numbers})" if numbers else "")
