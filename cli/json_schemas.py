"""The JSON Schemas of the commands' ``--json`` output, generated from its types.

``python docs/schemas/write.py`` writes them to the documentation; a test keeps those up to date.
"""

from __future__ import annotations

import builtins
import inspect
import types
import typing
from collections import abc
from importlib import resources
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from numaproof.cli.schema import OUTPUTS, PROTOCOL, Output
from numaproof.conformance.selection.needs import FeatureRow
from numaproof.protocol.campaign import CampaignSummary
from numaproof.protocol.diagnosis import Diagnosis, KubeletDiagnosis
from numaproof.protocol.events import AnyEvent
from numaproof.protocol.schemas import SETS
from numaproof.reports.board.json_output import BoardReport
from numaproof.reports.json_output import (
    CaseRow,
    ConfigurationProblem,
    DiscoveredMachine,
    ProfileRow,
    RunComparison,
    RunReport,
)
from numaproof.simulation.checkpoints import Judgement
from numaproof.simulation.fleet import FleetSimulation
from numaproof.simulation.upgrades import Upgrade
from numaproof.simulation.what_ifs import NodeSimulation

KINDS: dict[str, Any] = {
    "run": RunReport,
    "report": RunComparison,
    "events": AnyEvent,
    "campaign": CampaignSummary,
    "doctor": Diagnosis,
    "kubelet": KubeletDiagnosis,
    "board": BoardReport,
    "simulate": NodeSimulation | FleetSimulation,
    "config": list[ConfigurationProblem],
    "state": Judgement | list[Judgement],
    "upgrade": Upgrade,
    "discover": DiscoveredMachine,
    "profiles": list[ProfileRow],
    "cases": list[CaseRow],
    "features": list[FeatureRow],
}
"""The types of the outputs in `schema.OUTPUTS`, by name."""


def schema(output: Output) -> dict[str, Any]:
    """Returns the JSON Schema of an output."""
    definitions: dict[str, Any] = {}
    top = _Translator(definitions).schema(KINDS[output.name])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:numaproof:{output.name}:{output.version}",
        "title": f"{output.what}, version {output.version}",
        **top,
        "$defs": dict(sorted(definitions.items())),
    }


class _Translator:
    """Translates types as msgspec encodes them, including plain unions of Structs."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._classes: dict[str, type] = {}

    def schema(self, kind: Any) -> dict[str, Any]:
        """Returns the schema of a type, and adds classes to the definitions."""
        plain = SETS.get(kind) or _PLAIN.get(kind)
        if plain is not None:
            return plain
        found: dict[str, Any]
        match get_origin(kind), get_args(kind):
            case typing.Literal, values:
                found = {"enum": list(values)}
            case ((typing.Union | types.UnionType), members):
                found = {"anyOf": [self.schema(member) for member in members]}
            case builtins.tuple, members if members[-1] is not ...:
                found = {"type": "array", "prefixItems": [self.schema(one) for one in members]}
            case ((builtins.tuple | builtins.list | builtins.frozenset), (member, *_)):
                found = {"type": "array", "items": self.schema(member)}
            case ((builtins.dict | abc.Mapping), (_, value)):
                found = {"type": "object", "additionalProperties": self.schema(value)}
            case _:
                found = self._reference(kind)
        return found

    def _reference(self, kind: type) -> dict[str, Any]:
        name = kind.__name__
        if self._classes.setdefault(name, kind) is not kind:
            raise TypeError(f"two classes are named {name}")
        if name not in self._definitions:
            self._definitions[name] = {}  # types can be recursive
            self._definitions[name] = self._object(kind)
        return {"$ref": f"#/$defs/{name}"}

    def _object(self, kind: type) -> dict[str, Any]:
        hints = get_type_hints(kind)
        names, optional = dict(zip(hints, hints, strict=True)), set[str]()
        tag: dict[str, Any] = {}
        if issubclass(kind, msgspec.Struct):
            fields = msgspec.structs.fields(kind)
            names = {one.name: one.encode_name for one in fields}
            config = kind.__struct_config__
            optional = {one.encode_name for one in fields if one.default is msgspec.UNSET}
            if config.omit_defaults:
                optional = {one.encode_name for one in fields if not one.required}
            if config.tag_field:
                tag = {config.tag_field: {"const": config.tag}}
        properties = tag | {
            encoded: self.schema(_set(hints[name])) for name, encoded in names.items()
        }
        return {
            "type": "object",
            "description": inspect.cleandoc(kind.__doc__ or ""),
            "properties": properties,
            "required": [name for name in properties if name not in optional],
            "additionalProperties": False,
        }


def _set(hint: Any) -> Any:
    """The type of a field that is present."""
    kinds = [one for one in get_args(hint) if one is not msgspec.UnsetType]
    return kinds[0] if len(kinds) == 1 and len(get_args(hint)) > 1 else hint


_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}


def text(output: Output) -> str:
    """Returns the JSON Schema of an output as text."""
    if output is PROTOCOL:
        return (resources.files("numaproof.protocol") / "schema.json").read_text(encoding="utf-8")
    return msgspec.json.format(msgspec.json.encode(schema(output))).decode() + "\n"


def files() -> dict[str, str]:
    """Returns the files of the documentation by name."""
    return {one.file: text(one) for one in OUTPUTS if one is not PROTOCOL}
