"""Answers in tables of tests, as `{Admitted: {...}}` with the name of their type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol import codec, machine, messages

if TYPE_CHECKING:
    from collections.abc import Mapping

MESSAGES = {**vars(messages), **vars(machine)}


def answer_in(row: Mapping[str, Any]) -> messages.Answer:
    """Returns the answer in a row: its only key with a capital is the type."""
    (kind,) = (name for name in row if name[0].isupper())
    answer: messages.Answer = codec.from_plain(row[kind], MESSAGES[kind])
    return answer
