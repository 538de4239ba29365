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
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.inputs.plurals import plural
from numaproof.protocol import codec, malformed, messages, schemas
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

MOST_MISTAKES = 10
"""Mistakes of a line that are shown."""

_MOST_ERRORS = 1000
"""Mistakes of a line that are looked for."""

_MOST_FIELDS = 3
"""Further fields with the same mistake that are named."""

_SHOWN = 60
"""Characters of a wrong value that a sentence shows."""

_OF_JSON_RPC = {"result": "ok", "error": "fault", "jsonrpc": ""}
"""Fields of JSON-RPC, and what the protocol has in their place."""

_EXAMPLES: dict[str, Any] = {
    "affinity": {"numa": None, "preferred": False},
    "containers": {"app": {"cpus": "0-7", "exclusive": "", "memory": [], "...": "..."}},
    "cpus": "0-7",
    "all": "0-7",
    "allocatable": "1-7",
    "shared": "0,3-7",
    "exclusive": "",
    "features": ["restart"],
    "kubernetes": ["1.37"],
    "language": "Go",
    "level": "invariants",
    "name": "my-driver",
    "numa": [0],
    "operations": ["start", "admit", "remove", "state"],
    "options": {"cpu": [], "topology": []},
    "policies": {"cpu": ["none", "static"]},
    "protocol": 1,
    "reason": "UnexpectedAdmissionError",
    "size": 1073741824,
    "stage": "cpu",
    "type": "memory",
    "version": "0.1",
    "what": "init containers",
}
"""What a field may look like, by its name; other fields get an example of their type."""

_TYPES: dict[str, tuple[str, Any]] = {
    "string": ("a string", "..."),
    "integer": ("an integer", 0),
    "boolean": ("true or false", False),
    "array": ("a list", []),
    "object": ("an object", {}),
    "null": ("null", None),
}
"""The types of JSON Schema in words, each with an example."""

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
        number: the id that it has, if that is a number.
        is_response: whether it is an object that could be the response to some request.
    """

    answer: messages.Answer | None = None
    findings: list[Finding] = field(default_factory=list)
    number: int | None = None
    is_response: bool = False

    def wrong(self, sentence: str, right: str = "", *, advice: bool = False) -> None:
        """Notes a mistake."""
        self.findings.append(Finding(sentence, right, advice))


@dataclass(frozen=True)
class _Mistake:
    """One mistake.

    Attributes:
        path: of the value.
        wrong: what is wrong, in a sentence that begins with the value's name.
        right: what would be right.
        kind: what the same mistake in other fields has in common; empty if it is of its own.
        meant: the value that was meant.
        example: of what could be there.
    """

    path: Path
    wrong: str
    right: str
    kind: str = ""
    meant: Any = field(default=_UNCLEAR, compare=False)
    example: Any = field(default=None, compare=False)


def read(line: bytes, number: int, operation: str) -> ReadLine:
    """What a line says as the response to request `number`, without its line break."""
    reading = ReadLine()
    if line.endswith(b"\r"):
        reading.wrong(
            "the line ends with a carriage return and a line feed",
            "end lines with `\\n` alone; numaproof reads yours, other harnesses may not",
            advice=True,
        )
    example = f"`{json.dumps({'id': number, 'ok': {}})}` on a line of its own"
    found = malformed.read(line, example)
    for sentence, right in found.problems:
        reading.wrong(sentence, right)
    if found.value is None:
        return reading
    reading.is_response = not {"id", *KINDS, *_OF_JSON_RPC}.isdisjoint(found.value)
    reading.number = _number(found.value.get("id"))
    try:
        answer = codec.decode_answer(line, number, operation)
    except codec.ProtocolError as error:
        if not codec.nests_deeply(line):
            _explain(reading, found.value, number, operation)
        if all(one.advice for one in reading.findings):
            # A mistake that no schema shows.
            reading.wrong(str(error))
            reading.answer = None
    else:
        reading.answer = answer
    return reading


def nearest(name: str, known: Iterable[str]) -> str:
    """A question that names the known name that is most like this one; empty if none is."""
    close = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean `{close[0]}`?" if close else ""


def _number(given: Any) -> int | None:
    with suppress(ValueError, TypeError, OverflowError):
        return None if isinstance(given, bool) else int(given)
    return None


def _explain(reading: ReadLine, value: dict[str, Any], number: int, operation: str) -> None:
    """Notes every mistake of a response, and the answer if it is clear what was meant."""
    kinds = [kind for kind in KINDS if kind in value]
    if len(kinds) != 1:
        many = " and ".join(f"`{one}`" for one in kinds)
        reading.wrong(
            f"the response has {many}" if many else "the response has none of the four kinds",
            "exactly one of `ok` (done), `refused` (a deliberate no), `unsupported` (you do not"
            " have it), `fault` (it broke)",
        )
    elif kinds == ["refused"] and not OPERATIONS[operation].refusals:
        reading.wrong(
            f"`{operation}` can't be refused",
            "`unsupported` if you do not have it, `fault` if it broke",
        )
    if type(value.get("id")) is int and value["id"] != number:
        reading.wrong(
            f"`id` is {value['id']}: that is the answer to another request",
            f'repeat the id of the request: `"id": {number}`',
        )
    schema = _schema(operation, kinds, value)
    errors = islice(_validator(json.dumps(schema)).iter_errors(value), _MOST_ERRORS)
    found = {one: None for error in errors for one in _mistakes(error, number)}
    mistakes = sorted(found, key=lambda one: _place(value, one.path))
    _note(reading, mistakes)
    if len(kinds) == 1 and kinds[0] in schema["required"]:
        reading.answer = _answer(reading, value, mistakes, operation)


@cache
def _definitions() -> dict[str, Any]:
    """The parts of the published schema, by name."""
    found: dict[str, Any] = schemas.document()["$defs"]
    return found


@cache
def _validator(schema: str) -> Validator:
    """Checks values by a schema, which is JSON and may refer to the published one."""
    # Loaded where it is needed, for it takes as long to load as all the rest.
    from jsonschema import Draft202012Validator, ValidationError, validators  # noqa: PLC0415

    def conforming(kind: type) -> Callable[..., Iterator[ValidationError]]:
        """A rule of the schema's that the codec has in full: the format of a set."""

        def rule(
            validator: Any, _: object, value: Any, schema: Schema
        ) -> Iterator[ValidationError]:
            if validator.is_type(value, schema["type"]):
                try:
                    codec.decode_hook(kind, value)
                except ValueError as error:
                    yield ValidationError(str(error))

        return rule

    # To the protocol, 1.0 is not an integer.
    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, one: type(one) is int)
    rules = {"pattern": conforming(CPUSet), "uniqueItems": conforming(NUMASet)}
    kind = validators.extend(Draft202012Validator, rules, type_checker=checker)
    return kind({**json.loads(schema), "$defs": _definitions()})


def _schema(operation: str, kinds: list[str], value: Mapping[str, Any]) -> Schema:
    """The schema of the response that was meant; if that is not clear, of any response."""
    branches: list[Schema] = _definitions()[f"response:{operation}"]["oneOf"]
    meant = [one for one in branches if kinds == [name for name in one["required"] if name != "id"]]
    for branch in meant:
        # Of two refusals, it is the one whose first field is there.
        needed = _resolved(branch["properties"][kinds[0]])["required"]
        if isinstance(value[kinds[0]], dict) and {*needed[:1]} & value[kinds[0]].keys():
            return branch
    if meant:
        return meant[0]
    properties = {**dict.fromkeys(KINDS, True), "id": branches[0]["properties"]["id"]}
    return {**branches[0], "properties": properties, "required": ["id"]}


def _resolved(schema: Schema) -> Schema:
    """The schema itself in place of a reference to it."""
    reference = schema.get("$ref")
    return _definitions()[reference.rpartition("/")[2]] if reference else schema


# Mistakes in words


def _mistakes(error: ValidationError, number: int) -> Iterator[_Mistake]:
    """What an error of the schema's means; `number` is the id of the request."""
    path, value, schema = tuple(error.absolute_path), error.instance, error.schema
    match error.validator:
        case "additionalProperties":
            known = schema.get("properties", {})
            yield from (_unknown(path, one, known, value) for one in value if one not in known)
        case "required":
            missing = (one for one in schema["required"] if one not in value)
            yield from (_missing(path, one, schema, number) for one in missing)
        case "type":
            yield _mistyped(path, value, (schema,), number)
        case "anyOf":
            # A value or null: it is the mistakes of the value that matter.
            inner = [one for one in error.context if one.path or one.validator != "type"]
            for one in inner:
                yield from _mistakes(one, number)
            if not inner:
                others = [one for one in schema["anyOf"] if one.get("type") != "null"]
                yield _mistyped(path, value, tuple(map(_resolved, others)), number)
        case _:
            yield _unfit(path, value, error)


def _unfit(path: Path, value: Any, error: ValidationError) -> _Mistake:
    """A value of the right type that is not one of those allowed."""
    wrong, schema = f"{_where(path)} is {shown(value)}", error.schema
    match error.validator:
        case "enum":
            near = nearest(value, schema["enum"]) if isinstance(value, str) else ""
            right = near or f"one of {_listed(schema['enum'])}"
            return _Mistake(path, wrong, right, example=schema["enum"][0])
        case "pattern":
            example = json.dumps(_example(path, schema))
            right = f"numbers and ascending ranges with commas between them: `{example}`"
            return _Mistake(path, f"{wrong}, not in the Linux list format ({error.message})", right)
        case "minimum":
            least = schema["minimum"]
            return _Mistake(path, f"{wrong}; it must be at least {least}", _placed(path, least))
        case "uniqueItems":
            return _Mistake(path, f"{wrong}: {error.message}", "sorted ids, each once: `[0, 1]`")
    return _Mistake(path, f"{_where(path)}: {error.message}", "see docs/protocol.md")


def _unknown(path: Path, name: str, known: Schema, value: Mapping[str, Any]) -> _Mistake:
    full = (*path, name)
    if path:
        near = nearest(name, known.keys() - value.keys())
        right = near or f"leave it out; {_where(path)} has {_listed(known) or 'no fields'}"
        return _Mistake(
            full, f"{_where(full)} is not a field of the protocol", right, meant=_NOTHING
        )
    meant = _OF_JSON_RPC.get(name)
    right = f"it is `{meant}` in this protocol" if meant else nearest(name, KINDS)
    right = right or f"a response has `id` and exactly one of {_listed(KINDS)}"
    return _Mistake(full, f"`{name}` is not a field of a response", right, meant=_NOTHING)


def _missing(path: Path, name: str, schema: Schema, number: int) -> _Mistake:
    full = (*path, name)
    if not path:
        right = f'repeat the id of the request: `"id": {number}`'
        return _Mistake(full, f"`{name}` is missing", right, meant=number)
    example = _example(full, _resolved(schema["properties"][name]))
    return _Mistake(
        full, f"{_where(full)} is missing", f"`{json.dumps({name: example})}`", example=example
    )


def _mistyped(path: Path, value: Any, schemas: tuple[Schema, ...], number: int) -> _Mistake:
    """A value of another type than any that the schemas allow."""
    if path == ("id",):
        wrong = f"`id` is {shown(value)}; it must be an integer"
        return _Mistake(path, wrong, f'`"id": {number}`', meant=number)
    called = " or ".join(map(_called, schemas))
    given = "null" if value is None else _kind(value)
    said = given if value is None else f"{given} ({shown(value)})"
    meant = _conversion(path, value, schemas[0])
    example = _example(path, schemas[0]) if meant is _UNCLEAR else meant
    return _Mistake(
        path,
        f"{_where(path)} is {said}; it must be {called}",
        _placed(path, example),
        kind=f"{given}; {called}",
        meant=meant,
        example=example,
    )


def _called(schema: Schema) -> str:
    """What a value must be, in words."""
    said = schema.get("description", "")
    if said.startswith("CPUs"):
        return 'a CPU set: a string in the Linux list format, `""` for none'
    if said.startswith("NUMA"):
        return "a NUMA set: a sorted list of node ids"
    called = _TYPES[schema["type"]][0]
    needed = schema.get("required")
    return f"{called} with {_listed(needed)}" if needed else called


def _conversion(path: Path, value: Any, schema: Schema) -> Any:
    """A value of the type that the schema asks for, if it is plain what was meant."""
    kind, is_cpus, given = schema["type"], "pattern" in schema, type(value)
    meant = _UNCLEAR
    if value is None:
        # No shared pool is not an empty one: what follows from that is not the program's mistake.
        if kind in ("array", "object") or (is_cpus and path[-1] != "shared"):
            meant = _TYPES[kind][1].copy() if kind != "string" else ""
    elif is_cpus and given is list and all(type(one) is int for one in value):
        with suppress(ValueError):
            meant = str(CPUSet(value))
    elif kind == "array" and given.__name__[:3] == schema["items"].get("type", "")[:3]:
        meant = [value]
    elif kind == "string" and not is_cpus and given in (int, float):
        meant = str(value)
    elif kind in ("integer", "boolean") and given in (str, int, float):
        with suppress(msgspec.ValidationError):
            meant = msgspec.convert(value, int if kind == "integer" else bool, strict=False)
    return meant


def _example(path: Path, schema: Schema) -> Any:
    """What a value may look like: by the name of its field if its type fits, else by its type."""
    kind = schema.get("type", "object")
    example = _EXAMPLES.get(_name(path))
    if example is not None and type(example) is type(_TYPES[kind][1]):
        return example
    if kind != "object":
        return [0] if schema.get("uniqueItems") else _TYPES[kind][1]
    properties = schema.get("properties", {})
    return {
        name: _example((*path, name), _resolved(properties[name]))
        for name in schema.get("required", ())
    }


def _placed(path: Path, example: Any) -> str:
    """An example in its place: in the list and in the field that it belongs to."""
    if path and isinstance(path[-1], int):
        example = [example]
    return f"`{json.dumps({_name(path): example} if len(path) > 1 else example)}`"


def _name(path: Path) -> str:
    """The name of the field that a value is in, or in whose list it is."""
    return next((one for one in reversed(path[1:]) if isinstance(one, str)), "")


def _where(path: Path) -> str:
    """A value's name for a person: its path below the kind of the response."""
    text = ""
    for one in path[1:]:
        if isinstance(one, int):
            text += f"[{one}]"
        elif "." in one:
            text += f"[{json.dumps(one)}]"
        else:
            text += f".{one}"
    return f"`{text.removeprefix('.') or (path[0] if path else 'response')}`"


def shown(value: Any) -> str:
    """A value as JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _kind(value: Any) -> str:
    kinds = {bool: "a boolean", str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


# All mistakes of a line


def _place(value: Any, path: Path) -> tuple[int, ...]:
    """Where in the line something is, or where it is missing: mistakes are told in that order."""
    place: list[int] = []
    for step in path:
        if isinstance(value, dict) and step not in value:
            return (*place, len(value))
        place.append([*value].index(step) if isinstance(value, dict) else int(step))
        value = value[step]
    return tuple(place)


def _note(reading: ReadLine, mistakes: list[_Mistake]) -> None:
    """Notes the mistakes: the same one in several fields once, and no more than can be read."""
    alike: dict[object, list[_Mistake]] = {}
    for one in mistakes:
        alike.setdefault(one.kind or one, []).append(one)
    for first, *others in islice(alike.values(), MOST_MISTAKES):
        wrong = first.wrong
        if others:
            names = [_where(one.path) for one in others[:_MOST_FIELDS]]
            more = len(others) - len(names)
            names += [plural(more, "more field")] if more else []
            wrong += f"; so must {', '.join(names)}"
        reading.wrong(wrong, first.right)
    if len(alike) > MOST_MISTAKES:
        more = len(alike) - MOST_MISTAKES
        reading.wrong(f"... and {plural(more, 'more mistake')} in this line", advice=True)


def _answer(
    reading: ReadLine, value: dict[str, Any], mistakes: list[_Mistake], operation: str
) -> messages.Answer | None:
    """The answer with what was meant in place of each mistake; None if that is not clear.

    Who the program is must be known to go on at all: there, examples take the place of what is not
    clear.
    """
    (kind,) = (one for one in KINDS if one in value)
    made = {"id": 0, kind: deepcopy(value[kind])}
    for one in mistakes:
        *parents, last = one.path
        meant = one.meant
        if meant is _UNCLEAR and operation == "hello" and len(one.path) > 1:
            meant = one.example
        if meant is _UNCLEAR:
            return None
        holder: Any = made
        for step in parents:
            holder = holder[step]
        if meant is _NOTHING:
            holder.pop(last, None)
        elif one.path != ("id",):
            holder[last] = meant
    try:
        return codec.decode_answer(json.dumps(made).encode(), 0, operation)
    except codec.ProtocolError as error:
        reading.wrong(str(error))
        return None
