"""JSON Schemas of the protocol, generated from the typed messages.

``python -m numaproof.protocol.schemas`` prints the document published as
``protocol/schema.json``; a test keeps the file up to date.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

import msgspec

from numaproof.protocol import messages
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.sets import CPUSet, NUMASet

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LIST_FORMAT = r"^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$"


def document() -> dict[str, Any]:
    """Returns the schema of all request and response lines.

    ``#/$defs/request:OPERATION`` and ``#/$defs/response:OPERATION`` describe a single operation;
    the document itself accepts any request or response.
    """
    kinds = {
        kind
        for operation in OPERATIONS.values()
        for kind in (operation.args, operation.result, *operation.refusals)
    }
    ordered = sorted(kinds | {messages.Unsupported, messages.Fault}, key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components(
        ordered, schema_hook=SETS.__getitem__, ref_template="#/$defs/{name}"
    )
    lines: dict[str, Any] = {}
    for name, operation in OPERATIONS.items():
        lines[f"request:{name}"] = _request(name, operation.args)
        lines[f"response:{name}"] = _response(operation.result, operation.refusals)
    return {
        "$schema": _DIALECT,
        "title": f"numaproof conformance protocol, version {messages.PROTOCOL_VERSION}",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in lines],
        "$defs": {**lines, **_dedent_descriptions(components)},
    }


def _dedent_descriptions(value: Any) -> Any:
    """Dedents the docstrings in a schema, because only some Python versions do this."""
    if isinstance(value, dict):
        return {
            key: inspect.cleandoc(item)
            if key == "description" and isinstance(item, str)
            else _dedent_descriptions(item)
            for key, item in value.items()
        }
    return [_dedent_descriptions(item) for item in value] if isinstance(value, list) else value


def _request(name: str, args: type[msgspec.Struct]) -> dict[str, Any]:
    return _closed_object({"id": _NUMBER, "op": {"const": name}, "args": _ref(args)})


def _response(
    result: type[msgspec.Struct], refusals: tuple[type[msgspec.Struct], ...]
) -> dict[str, Any]:
    bodies = [("ok", _ref(result))]
    bodies += [("refused", _ref(kind)) for kind in refusals]
    bodies += [("unsupported", _ref(messages.Unsupported)), ("fault", _ref(messages.Fault))]
    return {"oneOf": [_closed_object({"id": _NUMBER, kind: body}) for kind, body in bodies]}


_NUMBER = {"type": "integer"}


def _ref(kind: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _closed_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SETS: dict[type, dict[str, Any]] = {
    CPUSet: {
        "type": "string",
        "pattern": _LIST_FORMAT,
        "description": "CPUs in the Linux list format.",
    },
    NUMASet: {
        "type": "array",
        "items": {"type": "integer", "minimum": 0},
        "uniqueItems": True,
        "description": "NUMA node ids, sorted.",
    },
}


def text() -> str:
    """Returns the text of the published document."""
    return msgspec.json.format(msgspec.json.encode(document(), order="sorted")).decode() + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
