"""Programs that start a kubelet, and that have a flag of their own for its flags."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import Flag, read_flags, with_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numaproof.formats.configurations.configuration import Words
    from numaproof.inputs.documents import Document

_WRAPPED = {"kubelet-arg": ("", "k3s and RKE2"), "extra-config": ("kubelet.", "minikube")}
"""Flags whose values are flags of the kubelet: the prefix of each, and the products."""

_COMMAND = "kubelet-extra-args"
"""A flag whose value is a command line of the kubelet; if it is repeated, the last one counts."""

_SCRIPTS = (("bootstrap.sh", "EKS"), ("oke-init", "OKE"), ("k0s", "k0s"))
"""Programs with such a flag, and their products."""

MENTION = re.compile(rf"--(?:{_COMMAND}|{'|'.join(_WRAPPED)})[\s=]")
"""Such a flag in a text."""


def wrapping_flags(words: Words) -> set[str]:
    """Returns the flags among some words whose values are flags of the kubelet."""
    names = {word.lstrip("-").partition("=")[0] for word, _ in words if word.startswith("--")}
    return names & {*_WRAPPED, _COMMAND}


def product(words: Words) -> str:
    """Returns the product that starts a kubelet with further settings; empty if none does."""
    names = wrapping_flags(words)
    if _COMMAND in names:
        marks = (name for mark, name in _SCRIPTS if any(mark in word for word, _ in words))
        return next(marks, "the program that gets --kubelet-extra-args")
    return next((_WRAPPED[name][1] for name in names), "")


def kubelet_flags(
    words: Words, on_other: Callable[[str, Document], None], on_note: Callable[[str], None]
) -> Iterator[Flag]:
    """Yields the kubelet's flags; those of a program that starts a kubelet are dropped.

    Args:
        words: the arguments of the kubelet, or of the program.
        on_other: is called with each word that belongs to no flag.
        on_note: is called with a note about each value that a later one replaces.
    """
    if not wrapping_flags(words):
        yield from read_flags(words, on_other)
        return
    values = [*_values(words)]
    last = max((n for n, (name, _, _) in enumerate(values) if name == _COMMAND), default=-1)
    for number, (name, value, place) in enumerate(values):
        if name != _COMMAND:
            yield from read_flags([(value, place)])
        elif number == last:
            yield from read_flags([(one, place) for one in value.split()], on_other)
        else:
            text = f"left out --{_COMMAND} {value!r}: the last --{_COMMAND} replaces it"
            on_note(with_place(place, (), text))


def _values(words: Words) -> Iterator[tuple[str, str, Document]]:
    """Yields the values of the flags that wrap others: the flag, the value and its place."""
    for number, (word, place) in enumerate(words):
        # Which of the program's other flags have a value isn't known here.
        name, separator, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not wrapping_flags([(word, place)]):
            continue
        if not separator:
            value = words[number + 1][0] if number + 1 < len(words) else ""
        if name == _COMMAND:
            yield name, value, place
        elif value.startswith(_WRAPPED[name][0]):
            inner = value.removeprefix(_WRAPPED[name][0])
            yield name, f"--{inner.removeprefix('--')}", place
