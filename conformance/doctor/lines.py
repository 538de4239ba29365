"""Reads a line that should be the response to a request: its answer, and all that is wrong with it.

The codec decides whether a line is right. Where it is not, the published JSON Schema shows every
mistake; here they are put into words. What was meant is taken where that is clear all the same.
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
"""Mistakes of a line that are shown."""

_MAX_FOUND = 1000
"""Mistakes of a line that are looked for."""

_MAX_FIELDS = 3
"""Further fields with the same mistake that are named."""

_SHOWN = 60
"""Characters of a wrong value that a sentence shows."""

_SCALARS: dict[str, type] = {"integer": int, "boolean": bool}

_UNCLEAR = object()
"""Stands for a value of which it is not clear what was meant."""

_NOTHING = object()
"""Stands for a field that should not be there."""


@dataclass
class ReadLine:
    """What a line says.

    Attributes:
        answer: the answer, if what it is is clear.
        findings: what is wrong with the line.
        is_response: whether it could be the response to the request.
    """

    answer: messages.Answer | None = None
    findings: list[Finding] = field(default_factory=list)
    is_response: bool = False

    def note(self, name: str, /, **values: Any) -> None:
        """Notes a finding by its name."""
        self.findings.append(finding(name, **values))


@dataclass(frozen=True)
class _Mistake:
    """One mistake.

    Attributes:
        path: of the value.
        name: of the finding.
        right: what would be right.
        details: what else there is to say of it, as pairs.
        intended_value: the value that was meant.
    """

    path: Path
    name: str
    right: str = ""
    details: tuple[tuple[str, Any], ...] = ()
    intended_value: Any = field(default=_UNCLEAR, compare=False)

    @property
    def where(self) -> str:
        """A value's name for a person: its path below the kind of the response."""
        steps = (
            f".{one}" if isinstance(one, str) and "." not in one else f"[{json.dumps(one)}]"
            for one in self.path[1:]
        )
        return f"`{''.join(steps).removeprefix('.') or self.path[0]}`"

    @property
    def kind(self) -> object:
        """What the same mistake in other fields has in common."""
        said = dict(self.details)
        return (said["given"].partition(" (")[0], said["called"]) if "given" in said else self

    @property
    def finding(self) -> Finding:
        """The mistake in words."""
        return finding(self.name, where=self.where, right=self.right, **dict(self.details))


def read(line: bytes, number: int, operation: str) -> ReadLine:
    """What a line says as the response to request `number`, without its line break."""
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
            # A mistake that no schema shows.
            reading.findings.append(Finding(str(error)))
            reading.answer = None
    return reading


def nearest(name: str, known_names: Iterable[str]) -> str:
    """A question that names the known name that is most like this one; empty if none is."""
    names = {one.lower(): one for one in known_names}
    close = difflib.get_close_matches(name.lower(), names, 1)
    return f"did you mean `{names[close[0]]}`?" if close else ""


def _explain(
    reading: ReadLine, value: dict[str, Any], number: int, operation: str
) -> messages.Answer | None:
    """Notes every mistake of a response; the answer if it is clear what was meant."""
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
    """The parts of the published schema, by name."""
    found: dict[str, Any] = schemas.document()["$defs"]
    return found


def _validator(schema: Schema) -> Validator:
    """Checks values by a schema, which may refer to the published one."""
    # Loaded where it is needed, for it takes as long to load as all the rest.
    from jsonschema import Draft202012Validator, ValidationError, validators  # noqa: PLC0415

    def conforming(kind: type) -> Callable[..., Iterator[ValidationError]]:
        """A rule of the schema's that the codec has in full: the format of a set."""

        def rule(checker: Any, _: Any, value: Any, schema: Schema) -> Iterator[ValidationError]:
            members = value if isinstance(value, list) else ()
            known = all(type(one) is int for one in members)
            if known and checker.is_type(value, schema["type"]):
                try:
                    codec.decode_hook(kind, value)
                except ValueError as error:
                    yield ValidationError(str(error))

        return rule

    # To the protocol, 1.0 is not an integer.
    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, number: type(number) is int
    )
    rules = {"pattern": conforming(CPUSet), "uniqueItems": conforming(NUMASet)}
    kind = validators.extend(Draft202012Validator, rules, type_checker=types)
    return kind({**schema, "$defs": _definitions()})


def _schema(operation: str, kinds: list[str], value: Mapping[str, Any]) -> Schema:
    """The schema of the response that was meant; if that is not clear, of any response."""
    branches: list[Schema] = _definitions()[f"response:{operation}"]["oneOf"]
    meant = [one for one in branches if one["required"] == ["id", *kinds]]
    if not meant:
        return {**branches[0], "properties": dict.fromkeys(("id", *KINDS), True), "required": []}
    body = value[kinds[0]]
    # Of two refusals, it is the one whose first field is there.
    needed = [_resolve(one["properties"][kinds[0]])["required"][:1] for one in meant]
    fits = [isinstance(body, dict) and not {*names}.isdisjoint(body) for names in needed]
    return meant[fits.index(True)] if any(fits) else meant[0]


def _resolve(schema: Schema) -> Schema:
    """The schema itself in place of a reference to it."""
    reference = schema.get("$ref")
    return _definitions()[reference.rpartition("/")[2]] if reference else schema


# Mistakes in words


def _mistakes(error: ValidationError) -> Iterator[_Mistake]:
    """What an error of the schema's means."""
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
            # A value or null: it is the mistakes of the value that matter.
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
    """A value of another type than any that the schemas allow."""
    given = "null" if value is None else f"{_kind(value)} ({short_json(value)})"
    said = (("given", given), ("called", " or ".join(map(_describe_type, schemas))))
    meant = _conversion(path, value, schemas[0])
    example = _example(path, schemas[0]) if meant is _UNCLEAR else meant
    return _Mistake(path, "wrong-type", _example_in_place(path, example), said, meant)


def _value_mistake(path: Path, value: Any, error: ValidationError) -> _Mistake:
    """A value of the right type that is not one of those allowed."""
    right = _example_in_place(path, _example(path, error.schema))
    if allowed := error.schema.get("enum"):
        right = nearest(str(value), allowed) or f"one of {_list_quoted(allowed)}"
    said = (("value", short_json(value)), ("why", error.message))
    name = error.validator if error.validator in wording().findings else "other"
    return _Mistake(path, name, right, said)


def _describe_type(schema: Schema) -> str:
    """What a value must be, in words."""
    said = schema.get("description", "")
    if said.startswith("CPUs"):
        return 'a CPU set: a string in the Linux list format, `""` for none'
    if said.startswith("NUMA"):
        return "a NUMA set: a sorted list of node ids"
    called = wording().types[schema["type"]][0]
    needed = schema.get("required")
    return f"{called} with {_list_quoted(needed)}" if needed else called


def _conversion(path: Path, value: Any, schema: Schema) -> Any:
    """A value of the type that the schema asks for, if it is plain what was meant."""
    kind, is_cpus, meant = schema["type"], "pattern" in schema, _UNCLEAR
    is_scalar = isinstance(value, str | int | float) and not isinstance(value, bool)
    with suppress(ValueError, TypeError, LookupError, msgspec.ValidationError):
        if kind == "object" and not schema.get("required") and (value is None or "title" in schema):
            meant = {}
        elif value is None and (kind == "array" or (is_cpus and path[-1] != "shared")):
            # No shared pool is not an empty one: what follows from that is not its mistake.
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
    """What a value may look like: by the name of its field if its type fits, else by its type."""
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
    """An example in its place: in the list and in the field that it belongs to."""
    if path and isinstance(path[-1], int):
        example = [example]
    return f"`{json.dumps({_name(path): example} if len(path) > 1 else example)}`"


def _name(path: Path) -> str:
    """The name of the field that a value is in, or in whose list it is."""
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


# All mistakes of a line


def _note(reading: ReadLine, mistakes: list[_Mistake]) -> None:
    """Notes the mistakes: the same one in several fields once, and no more than can be read."""
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
    """The response with what was meant in place of each mistake; nothing if that is not clear.

    Who the program is must be known to go on at all: there, examples take the place of what is not
    clear.
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
