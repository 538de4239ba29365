"""Everything that is wrong with the shape of a message, each field named with what is right.

The codec refuses a message at its first mistake. An author wants all of them, with an example each,
and the dialogue wants to go on: `check` returns every mistake, and the value mended where what was
meant is clear.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect

from numaproof.protocol.diagnosis import Finding
from numaproof.protocol.sets import CPUSet, ListFormatError, NUMASet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SHOWN = 60
"""Characters of a wrong value that a sentence shows."""

_EXAMPLES: dict[str, Any] = {
    "affinity": {"numa": None, "preferred": False},
    "containers": {"app": {"cpus": "0-7", "exclusive": "", "memory": [], "...": "..."}},
    "cpus": "0-7",
    "all": "0-7",
    "allocatable": "1-7",
    "shared": "0,3-7",
    "exclusive": "",
    "features": ["restart"],
    "files": {},
    "kubernetes": ["1.37"],
    "language": "Go",
    "level": "invariants",
    "memory": [],
    "name": "my-driver",
    "operations": ["start", "admit", "remove", "state"],
    "options": {"cpu": [], "topology": []},
    "policies": {"cpu": ["none", "static"]},
    "preferred": False,
    "protocol": 1,
    "reason": "UnexpectedAdmissionError",
    "size": 1073741824,
    "stage": "cpu",
    "type": "memory",
    "version": "0.1",
    "what": "init containers",
}
"""What a field may look like, by its name; other fields get an example of their type."""


@dataclass
class Shape:
    """What came of a check.

    Attributes:
        findings: every mistake.
        called: what the value as a whole is called.
        sound: whether the mended value says what the program meant; nothing in it is made up.
    """

    findings: list[Finding] = field(default_factory=list)
    sound: bool = True
    called: str = "it"
    _mistaken: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)

    def mistyped(self, path: str, given: str, called: str, right: str, *, clear: bool) -> None:
        """Notes a value of a wrong type; the same mistake in other fields is no other finding.

        Args:
            path: of the field; empty for the message.
            given: what it is, in words.
            called: what it must be, in words.
            right: an example.
            clear: whether what was meant is.
        """
        what = f"`{path}`" if path else self.called
        mistake = (given.partition(" (")[0], called)
        names = self._mistaken.setdefault(mistake, {})
        if not names:
            self.wrong(f"{what} is {given}; it must be {called}", right, clear=clear)
            names[_name(path)] = len(self.findings) - 1
        elif _name(path) not in names:
            at = next(iter(names.values()))
            said = self.findings[at].wrong + (
                f", {what}" if len(names) > 1 else f"; so must {what}"
            )
            self.findings[at] = msgspec.structs.replace(self.findings[at], wrong=said)
            names[_name(path)] = at
        self.sound = self.sound and clear

    def wrong(self, sentence: str, right: str, *, clear: bool) -> None:
        """Notes a mistake; `clear` if what was meant is."""
        self.findings.append(Finding(sentence, right))
        self.sound = self.sound and clear


def check(value: Any, kind: Any, called: str = "it") -> tuple[Shape, Any]:
    """The mistakes in a value that should be a message of type `kind`, and the value mended."""
    shape = Shape(called=called)
    return shape, _checked(shape, value, inspect.type_info(kind), "")


def nearest(name: str, known: Iterable[str]) -> str:
    """A question that names the known name that is most like this one; empty if none is."""
    close = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean `{close[0]}`?" if close else ""


def shown(value: Any) -> str:
    """A value as JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _checked(shape: Shape, value: Any, info: inspect.Type, path: str) -> Any:
    checker = _CHECKERS.get(type(info))
    return checker(shape, value, info, path) if checker else value


def _union(shape: Shape, value: Any, info: inspect.UnionType, path: str) -> Any:
    """A union of the protocol is one type, or None, or several that JSON tells apart."""
    kinds = [one for one in info.types if not isinstance(one, inspect.NoneType)]
    if value is None and len(kinds) < len(info.types):
        return None
    if len(kinds) == 1:
        return _checked(shape, value, kinds[0], path)
    for kind in kinds:
        if type(value) is _PLAIN[type(kind)]:
            return _checked(shape, value, kind, path)
    called = " or ".join(_kind(_PLAIN[type(kind)]()) for kind in kinds)
    _mistyped(shape, value, (called, _of_type(kinds[0])), path)
    return _of_type(kinds[0])


def _struct(shape: Shape, value: Any, info: inspect.StructType, path: str) -> Any:
    fields = {one.encode_name: one for one in info.fields}
    if not isinstance(value, dict):
        needed = [name for name, one in fields.items() if one.required]
        called = f"an object with {_listed(needed)}" if needed else "an object"
        _mistyped(shape, value, (called, _example_of(info, path)), path)
        return {name: _example_of(fields[name].type, name) for name in needed}
    made = {}
    for name, item in value.items():
        if name in fields:
            made[name] = _checked(shape, item, fields[name].type, _at(path, name))
        elif info.forbid_unknown_fields:
            right = nearest(name, fields.keys() - value.keys())
            where = f"`{path}`" if path else "this answer"
            shape.wrong(
                f"`{_at(path, name)}` is not a field of the protocol",
                right or f"leave it out; {where} has {_listed(fields) or 'no fields'}",
                clear=True,
            )
        else:
            made[name] = item
    for name, one in fields.items():
        if one.required and name not in value:
            example = _example_of(one.type, name)
            shape.wrong(
                f"`{_at(path, name)}` is missing", f"`{json.dumps({name: example})}`", clear=False
            )
            made[name] = example
    return made


def _mapping(shape: Shape, value: Any, info: inspect.DictType, path: str) -> Any:
    if isinstance(value, dict):
        return {
            key: _checked(shape, item, info.value_type, _at(path, key))
            for key, item in value.items()
        }
    wanted = "an object", _fitting(path, info, {})
    _mistyped(shape, value, wanted, path, clear=value is None)
    return {}


def _list(shape: Shape, value: Any, info: inspect.VarTupleType, path: str) -> Any:
    if isinstance(value, list):
        return [
            _checked(shape, item, info.item_type, f"{path}[{at}]") for at, item in enumerate(value)
        ]
    one_alone = isinstance(value, str) and isinstance(info.item_type, inspect.StrType)
    wanted = "a list", [value] if one_alone else _fitting(path, info, [])
    _mistyped(shape, value, wanted, path, clear=value is None)
    return []


def _cpus(shape: Shape, value: Any, path: str) -> Any:
    example = _EXAMPLES.get(_name(path), "0-3,8")
    if not isinstance(value, str):
        called = 'a CPU set: a string in the Linux list format, `""` for none'
        # No shared pool is no empty one: what would follow from that is not the program's mistake.
        meant = None if value is None and path == "shared" else _listed_cpus(value)
        _mistyped(shape, value, (called, meant or example), path, clear=meant is not None)
        return meant or ""
    try:
        CPUSet.parse(value)
    except (ListFormatError, ValueError) as error:
        shape.wrong(
            f"`{path}` is {shown(value)}, not in the Linux list format ({error})",
            f"numbers and ascending ranges with commas between them: `{json.dumps(example)}`",
            clear=False,
        )
        return ""
    return value


def _listed_cpus(value: Any) -> str | None:
    """What a value that is no string means as a CPU set; None if that is not clear."""
    if value is None:
        return ""
    if not isinstance(value, list) or not all(type(one) is int for one in value):
        return None
    try:
        return str(CPUSet(value))
    except ValueError:
        return None


def _nodes(shape: Shape, value: Any, path: str) -> Any:
    called = "a NUMA set: a sorted list of node ids"
    if type(value) is int:
        value = [value]
        _mistyped(shape, value[0], (called, value), path, clear=True)
    elif not isinstance(value, list) or not all(type(one) is int and one >= 0 for one in value):
        _mistyped(shape, value, (called, None if path.endswith("affinity.numa") else [0]), path)
        return [0]
    try:
        made = list(NUMASet(value))
    except ValueError as error:
        shape.wrong(f"`{path}` is {shown(value)}: {error}", "`[0, 1]`", clear=False)
        return [0]
    if made != value:
        shape.wrong(
            f"`{path}` is {shown(value)}, which is not sorted or repeats an id",
            f"`{json.dumps(made)}`",
            clear=True,
        )
    return made


def _choice(shape: Shape, value: Any, info: inspect.LiteralType, path: str) -> Any:
    values = [str(one) for one in info.values]
    if value in values:
        return value
    near = nearest(value, values) if isinstance(value, str) else ""
    shape.wrong(f"`{path}` is {shown(value)}", near or f"one of {_listed(values)}", clear=False)
    return values[0]


def _scalar(shape: Shape, value: Any, info: inspect.Type, path: str) -> Any:
    kind = _SCALARS[type(info)]
    if type(value) is kind.python:
        return value
    example = _EXAMPLES.get(_name(path), kind.example)
    example = example if type(example) is kind.python else kind.example
    mended = _converted(value, kind.python)
    wanted = kind.called, example if mended is None else mended
    _mistyped(shape, value, wanted, path, clear=mended is not None)
    return example if mended is None else mended


@dataclass(frozen=True)
class _Scalar:
    python: type
    called: str
    example: Any


_SCALARS: dict[type[inspect.Type], _Scalar] = {
    inspect.StrType: _Scalar(str, "a string", "..."),
    inspect.IntType: _Scalar(int, "an integer", 0),
    inspect.BoolType: _Scalar(bool, "true or false", False),
}


_PLAIN: dict[type[inspect.Type], type] = {
    **{kind: scalar.python for kind, scalar in _SCALARS.items()},
    inspect.DictType: dict,
}
"""What JSON has for the types that stand side by side in a union."""


def _converted(value: Any, kind: type) -> Any:
    """A value as a scalar of another type, if it is plain what it stands for."""
    try:
        return msgspec.convert(value, kind, strict=False) if not isinstance(value, bool) else None
    except msgspec.ValidationError:
        return str(value) if kind is str and type(value) in {int, float} else None


def _mistyped(
    shape: Shape, value: Any, wanted: tuple[str, Any], path: str, *, clear: bool = False
) -> None:
    """Notes a value of another type than the wanted one, which is given in words and by example."""
    called, example = wanted
    given = "null" if value is None else f"{_kind(value)} ({shown(value)})"
    placed = [example] if path.endswith("]") and not path.endswith('"]') else example
    right = f"`{json.dumps({_name(path): placed} if path else example)}`"
    shape.mistyped(path, given, called, right, clear=clear)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


def _of_type(info: inspect.Type) -> Any:
    """An example of a type; of a struct one with the fields that must be there."""
    match info:
        case inspect.StructType(fields=fields):
            return {
                one.encode_name: _example_of(one.type, one.encode_name)
                for one in fields
                if one.required
            }
        case inspect.CustomType(cls=cls):
            return "0-3,8" if cls is CPUSet else [0]
        case inspect.VarTupleType():
            return []
        case inspect.UnionType(types=types):
            # Null stands for nothing; where it may not stand, there is one type.
            return None if any(isinstance(one, inspect.NoneType) for one in types) else {}
        case _:
            found = _SCALARS.get(type(info))
            return found.example if found else {}


def _example_of(info: inspect.Type, path: str) -> Any:
    return _fitting(path, info, _of_type(info))


def _fitting(path: str, info: inspect.Type, other: Any) -> Any:
    """The example of a field of this name if its type is that of the field, else another."""
    example = _EXAMPLES.get(_name(path))
    fits = {
        inspect.StructType: dict,
        inspect.DictType: dict,
        inspect.VarTupleType: list,
        inspect.CustomType: str,
        inspect.StrType: str,
        inspect.LiteralType: str,
        inspect.IntType: int,
        inspect.BoolType: bool,
    }
    kind = fits.get(type(info))
    return example if kind is not None and isinstance(example, kind) else other


def _at(path: str, name: str) -> str:
    if "." in name:
        return f"{path}[{json.dumps(name)}]"
    return f"{path}.{name}" if path else name


def _name(path: str) -> str:
    if path.endswith('"]'):
        return str(json.loads(path[path.index('["') + 1 : -1]))
    return path.rpartition(".")[2].partition("[")[0]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _set(shape: Shape, value: Any, info: inspect.CustomType, path: str) -> Any:
    return (_cpus if info.cls is CPUSet else _nodes)(shape, value, path)


_CHECKERS: dict[type[inspect.Type], Callable[[Shape, Any, Any, str], Any]] = {
    inspect.StructType: _struct,
    inspect.DictType: _mapping,
    inspect.VarTupleType: _list,
    inspect.UnionType: _union,
    inspect.CustomType: _set,
    inspect.LiteralType: _choice,
    **dict.fromkeys(_SCALARS, _scalar),
}
"""What checks a value of each kind of type; anything goes for others."""
