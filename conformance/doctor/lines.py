"""Reads a response line and reports everything that is wrong with it.

The codec decides whether a line is valid. If it isn't, the published JSON Schema finds all
mistakes, which are put into words here. Where the intention is clear, the answer still counts.
"""

from __future__ import annotations

import difflib
import json
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, reduce
from itertools import islice
from operator import getitem
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.doctor.wording import finding, wording
from numaproof.inputs.plurals import plural
from numaproof.protocol import codec, json_problems, messages, schemas
from numaproof.protocol.diagnosis import Finding
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

    Path = tuple[str | int, ...]
    Schema = Mapping[str, Any]

KINDS = ("ok", "refused", "unsupported", "fault")

MAX_MISTAKES = 10
"""The maximum number of mistakes shown per line."""

_MAX_FOUND = 1000
"""The maximum number of mistakes searched for per line."""

_MAX_FIELDS = 3
"""The maximum number of other fields listed for the same mistake."""

_SHOWN = 60
"""The maximum length of an invalid value in a message."""

_SCALARS: dict[str, type] = {"integer": int, "boolean": bool}

_UNCLEAR = object()
"""Marks a value whose intention is unclear."""

_NOTHING = object()
"""Marks a field that must be removed."""


@dataclass
class ReadLine:
    """The result of reading a line.

    Attributes:
        answer: the answer, if its intention is clear.
        findings: what is wrong with the line.
        is_response: whether the line can be the response to the request.
    """

    answer: messages.Answer | None = None
    findings: list[Finding] = field(default_factory=list)
    is_response: bool = False

    def note(self, name: str, /, **values: Any) -> None:
        """Adds a finding by its name."""
        self.findings.append(finding(name, **values))


@dataclass(frozen=True)
class _Mistake:
    """A mistake in a line.

    Attributes:
        path: the path of the value.
        name: the name of the finding.
        right: how to fix it.
        details: other values for the message, as pairs.
        intended_value: the value that was probably intended.
    """

    path: Path
    name: str
    right: str = ""
    details: tuple[tuple[str, Any], ...] = ()
    intended_value: Any = field(default=_UNCLEAR, compare=False)

    @property
    def where(self) -> str:
        """The value's path within the response, without the response's kind, for messages."""
        steps = (
            f".{one}" if isinstance(one, str) and "." not in one else f"[{json.dumps(one)}]"
            for one in self.path[1:]
        )
        return f"`{''.join(steps).removeprefix('.') or self.path[0]}`"

    @property
    def kind(self) -> object:
        """The key for grouping the same mistake in several fields."""
        said = dict(self.details)
        return (said["given"].partition(" (")[0], said["called"]) if "given" in said else self

    @property
    def finding(self) -> Finding:
        """The mistake as a finding."""
        return finding(self.name, where=self.where, right=self.right, **dict(self.details))


def read(line: bytes, number: int, operation: str) -> ReadLine:
    """Reads a line, without its line break, as the response to request `number`."""
    reading = ReadLine()
    if line.endswith(b"\r"):
        reading.note("carriage-return")
    example = f"`{json.dumps({'id': number, 'ok': {}})}` on a line of its own"
    found = json_problems.read(line, example)
    reading.findings += [Finding(*problem) for problem in found.problems]
    if found.value is None:
        return reading
    given = found.value.get("id")
    is_any = not {"id", *KINDS, "result", "error"}.isdisjoint(found.value)
    reading.is_response = is_any and (not isinstance(given, int | str) or str(given) == str(number))
    try:
        reading.answer = codec.decode_answer(line, number, operation)
    except codec.ProtocolError as error:
        if not codec.nests_deeply(line):
            reading.answer = _explain(reading, found.value, number, operation)
        if all(one.advice for one in reading.findings):
            # A mistake that the schema can't find.
            reading.findings.append(Finding(str(error)))
            reading.answer = None
    return reading


def nearest(name: str, known_names: Iterable[str]) -> str:
    """Suggests the most similar known name; empty if there is none."""
    names = {one.lower(): one for one in known_names}
    close = difflib.get_close_matches(name.lower(), names, 1)
    return f"did you mean `{names[close[0]]}`?" if close else ""


def _explain(
    reading: ReadLine, value: dict[str, Any], number: int, operation: str
) -> messages.Answer | None:
    """Reports all mistakes in a response; returns the answer if its intention is clear."""
    kinds = [kind for kind in KINDS if kind in value]
    if len(kinds) != 1:
        many = " and ".join(f"`{one}`" for one in kinds)
        reading.note("several-kinds" if many else "no-kind", kinds=many)
    elif kinds == ["refused"] and not OPERATIONS[operation].refusals:
        reading.note("no-refusal", operation=operation)
    if "id" not in value:
        reading.note("no-id", number=number)
    elif type(value["id"]) is not int:
        reading.note("odd-id", value=short_json(value["id"]), number=number)
    elif value["id"] != number:
        reading.note("other-id", id=value["id"], number=number)
    schema = _schema(operation, kinds, value)
    errors = _validator(schema).iter_errors({**value, "id": number})
    every = (one for error in errors for one in _mistakes(error))
    found = set(islice(every, _MAX_FOUND))
    mistakes = sorted(found, key=lambda mistake: mistake.where)
    _note(reading, mistakes)
    if set(kinds) & {*schema["required"]}:
        with suppress(codec.ProtocolError):
            meant = json.dumps(_intended_response(value, mistakes, operation))
            return codec.decode_answer(meant.encode(), 0, operation)
    return None


@cache
def _definitions() -> dict[str, Any]:
    """The definitions in the published schema, by name."""
    found: dict[str, Any] = schemas.document()["$defs"]
    return found


def _validator(schema: Schema) -> Validator:
    """Creates a validator for a schema that may refer to the published one."""
    # Imported here because it takes as long to load as everything else together.
    from jsonschema import Draft202012Validator, ValidationError, validators  # noqa: PLC0415

    def conforming(kind: type) -> Callable[..., Iterator[ValidationError]]:
        """Replaces a schema rule with the codec's complete check of a set's format."""

        def rule(checker: Any, _: Any, value: Any, schema: Schema) -> Iterator[ValidationError]:
            members = value if isinstance(value, list) else ()
            known = all(type(one) is int for one in members)
            if known and checker.is_type(value, schema["type"]):
                try:
                    codec.decode_hook(kind, value)
                except ValueError as error:
                    yield ValidationError(str(error))

        return rule

    # The protocol doesn't accept 1.0 as an integer.
    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, number: type(number) is int
    )
    rules = {"pattern": conforming(CPUSet), "uniqueItems": conforming(NUMASet)}
    kind = validators.extend(Draft202012Validator, rules, type_checker=types)
    return kind({**schema, "$defs": _definitions()})


def _schema(operation: str, kinds: list[str], value: Mapping[str, Any]) -> Schema:
    """The schema of the intended response, or of any response if that is unclear."""
    branches: list[Schema] = _definitions()[f"response:{operation}"]["oneOf"]
    meant = [one for one in branches if one["required"] == ["id", *kinds]]
    if not meant:
        return {**branches[0], "properties": dict.fromkeys(("id", *KINDS), True), "required": []}
    body = value[kinds[0]]
    # Refusals are distinguished by their first field.
    needed = [_resolve(one["properties"][kinds[0]])["required"][:1] for one in meant]
    fits = [isinstance(body, dict) and not {*names}.isdisjoint(body) for names in needed]
    return meant[fits.index(True)] if any(fits) else meant[0]


def _resolve(schema: Schema) -> Schema:
    """Resolves a schema that is a reference."""
    reference = schema.get("$ref")
    return _definitions()[reference.rpartition("/")[2]] if reference else schema


# Describing mistakes


def _mistakes(error: ValidationError) -> Iterator[_Mistake]:
    """Converts a schema error to mistakes."""
    path, value, schema = tuple(error.absolute_path), error.instance, error.schema
    inner = [one for one in error.context or () if one.path or one.validator != "type"]
    match error.validator:
        case "additionalProperties":
            known = schema.get("properties", {})
            unused = known.keys() - value.keys()
            for name in (one for one in value if one not in known):
                right = (
                    nearest(name, unused)
                    or f"leave it out; the fields here are {_list_quoted(known)}"
                )
                what = "unknown-field" if path else "odd-field"
                yield _Mistake((*path, name), what, right, intended_value=_NOTHING)
        case "required":
            for name in (one for one in schema["required"] if one not in value):
                example = _example((*path, name), _resolve(schema["properties"][name]))
                right = f"`{json.dumps({name: example})}`"
                yield _Mistake((*path, name), "missing-field", right)
        case "anyOf" if inner:
            # If a value may also be null, only the mistakes of the value matter.
            for one in inner:
                yield from _mistakes(one)
        case "anyOf":
            others = [one for one in schema["anyOf"] if one.get("type") != "null"]
            yield _type_mistake(path, value, [_resolve(one) for one in others])
        case "type":
            yield _type_mistake(path, value, [schema])
        case _:
            yield _value_mistake(path, value, error)


def _type_mistake(path: Path, value: Any, schemas: list[Schema]) -> _Mistake:
    """A value of a type that the schemas don't allow."""
    given = "null" if value is None else f"{_kind(value)} ({short_json(value)})"
    said = (("given", given), ("called", " or ".join(map(_describe_type, schemas))))
    meant = _conversion(path, value, schemas[0])
    example = _example(path, schemas[0]) if meant is _UNCLEAR else meant
    return _Mistake(path, "wrong-type", _example_in_place(path, example), said, meant)


def _value_mistake(path: Path, value: Any, error: ValidationError) -> _Mistake:
    """A value of the right type that isn't allowed."""
    right = _example_in_place(path, _example(path, error.schema))
    if allowed := error.schema.get("enum"):
        right = nearest(str(value), allowed) or f"one of {_list_quoted(allowed)}"
    said = (("value", short_json(value)), ("why", error.message))
    name = error.validator if error.validator in wording().findings else "other"
    return _Mistake(path, name, right, said)


def _describe_type(schema: Schema) -> str:
    """Describes the values that a schema allows."""
    said = schema.get("description", "")
    if said.startswith("CPUs"):
        return 'a CPU set: a string in the Linux list format, `""` for none'
    if said.startswith("NUMA"):
        return "a NUMA set: a sorted list of node ids"
    called = wording().types[schema["type"]][0]
    needed = schema.get("required")
    return f"{called} with {_list_quoted(needed)}" if needed else called


def _conversion(path: Path, value: Any, schema: Schema) -> Any:
    """Converts a value to the type that the schema requires, if the intention is clear."""
    kind, is_cpus, meant = schema["type"], "pattern" in schema, _UNCLEAR
    is_scalar = isinstance(value, str | int | float) and not isinstance(value, bool)
    with suppress(ValueError, TypeError, LookupError, msgspec.ValidationError):
        if kind == "object" and not schema.get("required") and (value is None or "title" in schema):
            meant = {}
        elif value is None and (kind == "array" or (is_cpus and path[-1] != "shared")):
            # A missing shared pool is not an empty one, which would cause further findings.
            meant = "" if is_cpus else []
        elif is_cpus and isinstance(value, list):
            meant = str(CPUSet(value))
        elif is_scalar and kind == "array":
            meant = [value] if isinstance(value, str) != bool(schema.get("uniqueItems")) else meant
        elif is_scalar and not is_cpus:
            meant = (
                msgspec.convert(value, _SCALARS[kind], strict=False)
                if kind != "string"
                else str(value)
            )
    return meant


def _example(path: Path, schema: Schema) -> Any:
    """An example value, chosen by the field's name if the type fits, or else by the type."""
    kind = "string" if "enum" in schema else schema.get("type", "object")
    example = wording().examples.get(_name(path))
    usual = wording().types[kind][1]
    if type(example) is type(usual):
        return example
    properties = schema.get("properties", {})
    needed = schema.get("required", ())
    made = {name: _example((*path, name), _resolve(properties[name])) for name in needed}
    return made or ([0] if schema.get("uniqueItems") else usual)


def _example_in_place(path: Path, example: Any) -> str:
    """Formats an example within its list and field."""
    if path and isinstance(path[-1], int):
        example = [example]
    return f"`{json.dumps({_name(path): example} if len(path) > 1 else example)}`"


def _name(path: Path) -> str:
    """The name of the field that contains the value, possibly in a list."""
    return next((one for one in reversed(path[1:]) if isinstance(one, str)), "")


def short_json(value: Any) -> str:
    """A value as JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _kind(value: Any) -> str:
    kinds = {bool: "a boolean", str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")


def _list_quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# Collecting the mistakes of a line


def _note(reading: ReadLine, mistakes: list[_Mistake]) -> None:
    """Reports mistakes, grouping the same mistake in several fields and limiting their number."""
    alike: dict[object, list[_Mistake]] = {}
    for one in mistakes:
        alike.setdefault(one.kind, []).append(one)
    for first, *others in islice(alike.values(), MAX_MISTAKES):
        names = [one.where for one in others[:_MAX_FIELDS]]
        if more := others[_MAX_FIELDS:]:
            names.append(plural(len(more), "more field"))
        wrong = first.finding.wrong + (f"; so must {', '.join(names)}" if names else "")
        reading.findings.append(msgspec.structs.replace(first.finding, wrong=wrong))
    if len(alike) > MAX_MISTAKES:
        reading.note("more-mistakes", more=plural(len(alike) - MAX_MISTAKES, "more mistake"))


def _intended_response(value: dict[str, Any], mistakes: list[_Mistake], operation: str) -> Any:
    """The response with the mistakes replaced by the intended values; empty if any is unclear.

    The dialogue can't continue without `hello`, so examples replace unclear values there.
    """
    made = deepcopy({name: body for name, body in value.items() if name in KINDS})
    for one in mistakes:
        *parents, last = one.path
        meant = one.intended_value
        if meant is _UNCLEAR and operation == "hello" and parents:
            meant = wording().examples.get(str(last), _UNCLEAR)
        if meant is _UNCLEAR:
            return {}
        holder: Any = reduce(getitem, parents, made)  # type: ignore[arg-type]
        if meant is _NOTHING:
            holder.pop(last, None)
        else:
            holder[last] = meant
    return {**made, "id": 0}
