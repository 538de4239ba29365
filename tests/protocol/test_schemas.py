"""The published JSON Schema agrees with the types."""

from __future__ import annotations

from importlib import resources
from typing import Any

import jsonschema
import msgspec
import pytest

from numaproof.protocol import codec, messages, schemas
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.sets import CPUSet, NUMASet

PUBLISHED = (resources.files("numaproof.protocol") / "schema.json").read_text(encoding="utf-8")


def valid(line: bytes, definition: str) -> bool:
    document = msgspec.json.decode(PUBLISHED)
    schema: dict[str, Any] = {"$defs": document["$defs"], "$ref": f"#/$defs/{definition}"}
    checker = jsonschema.Draft202012Validator(schema)
    return checker.is_valid(msgspec.json.decode(line))


def test_the_published_schema_matches_the_types() -> None:
    assert schemas.text() == PUBLISHED


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        ("assign", messages.Assigned(CPUSet([0, 1, 5]))),
        ("assign", messages.StartRefused("cpu", "no")),
        ("assign", messages.AdmissionRefused("SMTAlignmentError", "no")),
        ("merge", messages.Merged(messages.Hint(NUMASet([0]), preferred=True), admit=True)),
        ("state", messages.Unsupported("state")),
        ("discover", MachineInfo(num_cores=3)),
    ],
)
def test_an_encoded_answer_is_valid(operation: str, answer: messages.Answer) -> None:
    assert valid(codec.encode_answer(1, answer), f"response:{operation}")


@pytest.mark.parametrize(
    ("line", "definition"),
    [
        (b'{"id": 1, "ok": {"cpus": "0-"}}', "response:assign"),
        (b'{"id": 1, "ok": {"cpus": "0", "more": 1}}', "response:assign"),
        (b'{"id": 1, "ok": {"cpus": "0"}, "fault": {"message": ""}}', "response:assign"),
        (b'{"id": 1, "op": "remove", "args": {}}', "request:remove"),
    ],
)
def test_the_schema_refuses_what_the_codec_refuses(line: bytes, definition: str) -> None:
    assert not valid(line, definition)


def test_requests_are_valid_and_machines_may_have_more_fields() -> None:
    args = messages.StartArgs(config={"cpuManagerPolicy": "none"}, state_dir="/s", root="/r")
    assert valid(codec.encode_request(1, "start", args), "request:start")
    assert valid(b'{"id": 1, "ok": {"num_cores": 1, "vendor_id": "x"}}', "response:discover")
