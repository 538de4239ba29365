"""Findings: what is wrong with an answer.

Judges return each finding as separate fields. The human-readable message and the cause in
signatures are rendered from these fields separately, so rewording a message never invalidates files
of known failures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from numaproof.protocol import machine, messages
from numaproof.protocol.mismatch import Mismatch

if TYPE_CHECKING:
    from collections.abc import Mapping

Source = Literal["expectation", "invariant", "reference", "other side", "documents", "node"]
"""Where a finding comes from: the case, an invariant, the reference, the other implementation,
`numaproof doctor`, or the check for leftovers on the node.
"""

Kind = Literal[
    "value",
    "hints",
    "refused",
    "refused otherwise",
    "accepted",
    "no container",
    "no file",
    "no JSON",
    "no field",
    "not included",
    "fault",
    "invariant",
    "statement",
    "field",
    "field on one side",
    "outcome",
]
"""The type of the problem."""


class _Words(NamedTuple):
    """Templates for the headline, the cause in signatures, and the expected and actual values."""

    headline: str
    cause: str
    expected: str = ""
    actual: str = ""


_BOTH = ("{expected}", "{actual}")
_REFUSED = "refused with {actual} ({text})"

_WORDS: Mapping[Kind, _Words] = {
    "value": _Words("{subject}", "{rule} not as expected", *_BOTH),
    "hints": _Words("{subject}", "{rule}", *_BOTH),
    "refused": _Words(
        "the outcome", "refused with {actual}, expected success", "success", _REFUSED
    ),
    "refused otherwise": _Words(
        "the outcome",
        "refused with {actual}, expected {expected}",
        "a refusal with {expected}",
        _REFUSED,
    ),
    "accepted": _Words(
        "the outcome",
        "accepted: expected a refusal with {expected}",
        "a refusal with {expected}",
        "accepted",
    ),
    "no container": _Words("there is no container {of} in the answer", "a container is missing"),
    "no file": _Words("there is no file {rule}", "there is no file {rule}"),
    "no JSON": _Words("{rule} is not JSON: {text}", "{rule} is not JSON not as expected"),
    "no field": _Words("{rule} has no {expected}", "{rule} not as expected"),
    "not included": _Words(
        "{subject} is missing, although `start` requested it",
        "{rule} is not told, though the start asked for it not as expected",
    ),
    "fault": _Words("the implementation broke: {text}", "the implementation broke not as expected"),
    "invariant": _Words("{text} [{rule}]", "invariant {rule}"),
    "statement": _Words("{text}", "{rule} not as expected"),
    "field": _Words("{subject}", "{rule} differs", *_BOTH),
    "field on one side": _Words("{subject}", "{rule} is only on one side", *_BOTH),
    "outcome": _Words("the outcome", "{actual} against {expected}", *_BOTH),
}

_FRAMES: Mapping[Source, str] = {
    "reference": "differs from the reference: {}",
    "other side": "{} differs",
}
"""Templates around the headlines of comparisons."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with an answer.

    Attributes:
        source: the judge that reports it.
        rule: what was compared, excluding names that a case chose: a path in the answer, a
            description such as ``exclusive CPUs``, a file or an invariant.
        of: the container or NUMA node concerned, as the case names it; usually empty.
        expected: the expected value, formatted.
        actual: the actual value, formatted.
        kind: the type of the problem.
        remark: a note on the two values, appended to the headline in brackets; usually empty.
        text: more details, from the program or the invariant.
        requirement: the violated requirement, if known.
    """

    source: Source
    rule: str
    of: str = ""
    expected: str = ""
    actual: str = ""
    kind: Kind = "value"
    remark: str = ""
    text: str = ""
    requirement: str = ""

    def __str__(self) -> str:
        """The full message, with the expected and actual values on separate lines."""
        return str(self.mismatch or self.headline)

    @property
    def headline(self) -> str:
        """The message, excluding the expected and actual values."""
        return _FRAMES.get(self.source, "{}").format(self._fill(_WORDS[self.kind].headline))

    @property
    def mismatch(self) -> Mismatch | None:
        """The headline with the expected and actual values; None if the kind has none."""
        words = _WORDS[self.kind]
        if not words.expected:
            return None
        return Mismatch(self.headline, self._fill(words.expected), self._fill(words.actual))

    @property
    def subject(self) -> str:
        """What was compared, as the headline describes it."""
        return self.rule + (f" of {self.of}" if self.of else "") + self.remark

    def with_sides_swapped(self) -> Finding:
        """The finding with the expected and actual values swapped."""
        return replace(self, expected=self.actual, actual=self.expected)

    def _fill(self, template: str) -> str:
        return template.format(
            rule=self.rule,
            of=self.of,
            subject=self.subject,
            expected=self.expected,
            actual=self.actual,
            text=self.text,
        )


def cause(finding: Finding) -> str:
    """The finding's contribution to a signature, independently of the case and the machine."""
    template = _WORDS[finding.kind].cause
    actual = finding.actual
    match finding.kind:
        case "field" | "field on one side":
            return template.format(rule=field_names(finding.rule))
        case "refused" | "refused otherwise" if actual.split() == [actual]:
            return template.format(actual=actual, expected=finding.expected)
        case "refused" | "refused otherwise":
            expected = finding.expected or "success"
            return plain(f"refused with {actual} ({finding.text}): expected {expected}")
        case "accepted" | "outcome":
            return plain(template.format(actual=actual, expected=finding.expected))
        case "not included" if finding.of:
            template = _WORDS["value"].cause
    return template.format(rule=_rule_name(finding.rule))


def _rule_name(rule: str) -> str:
    if "/" in rule:
        return "devices"  # `rule` is the resource's name
    return field_names(rule) if "." in rule else plain(rule)


# Text, excluding the parts that vary between machines, cases and seeds

_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_NUMBER = r"(?:0x[0-9a-f]+|\d+(?:[-.]\d+)*)"
_NUMBERS = re.compile(rf"\[?{_NUMBER}(?:, ?{_NUMBER})*\]?", re.IGNORECASE)


def plain(words: str) -> str:
    """Replaces quoted values and numbers with placeholders and joins lines."""
    return " ".join(_NUMBERS.sub("#", _QUOTED.sub("'…'", words)).split())


_FIELDS = frozenset(
    field.encode_name
    for module in (messages, machine)
    for one in vars(module).values()
    if isinstance(one, type) and issubclass(one, msgspec.Struct)
    for field in msgspec.structs.fields(one)
) | {"machine", "nodes"}
"""The names of message fields. Any other name in a path was chosen by a case."""


def field_names(path: str) -> str:
    """A path in an answer, excluding names that a case chose.

    The path keeps the name of a checkpoint file but not the location inside the file.
    """
    if path.startswith("files."):
        return ".".join(path.split(".")[:2])
    parts = [one if one in _FIELDS else "*" for one in path.split(".")]
    return ".".join(part for n, part in enumerate(parts) if part != "*" or parts[n - 1] != "*")
