"""Lines of the protocol and of saved events."""

from __future__ import annotations

import pytest

from numaproof.protocol import codec, events, messages, saved_events
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.sets import CPUSet, NUMASet


def test_a_request_is_a_line_with_id_operation_and_arguments() -> None:
    line = codec.encode_request(7, "remove", messages.RemoveArgs("uid-1"))
    assert line == b'{"id":7,"op":"remove","args":{"uid":"uid-1"}}\n'


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        ("assign", messages.Assigned(CPUSet([0, 1, 2, 8]))),
        ("start", messages.StartRefused("cpu", "no")),
        ("admit", messages.AdmissionRefused("SMTAlignmentError", "no")),
        ("merge", messages.Merged(messages.Hint(NUMASet([0, 3]), preferred=True), admit=True)),
        ("merge", messages.Merged(messages.Hint(None, preferred=False), admit=True)),
        ("state", messages.Unsupported("state")),
        ("remove", messages.Fault("boom", "trace")),
        ("remove", messages.Done()),
        ("discover", MachineInfo(num_cores=1)),
    ],
)
def test_an_answer_round_trips(operation: str, answer: messages.Answer) -> None:
    line = codec.encode_answer(3, answer)
    assert codec.decode_answer(line, 3, operation) == answer


@pytest.mark.parametrize("depth", [1500, 20_000])
@pytest.mark.parametrize("opening", [b"[", b'{"x":'])
def test_json_of_any_depth_is_parsed_or_refused(depth: int, opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    text = opening * depth + b"1" + closing * depth
    for line in (text, text.decode()):
        with pytest.raises(codec.ProtocolError, match="nested deeper than 200 levels"):
            codec.decode_any(line)
    flat = b"[" + b"[1]," * depth + b'"' + b"[" * depth + b'"]'
    assert len(codec.decode_any(flat)) == depth + 1


@pytest.mark.parametrize("text", [rb"\\", rb"\"[[", rb"\\\"", rb"\n[", b'","[', b""])
def test_brackets_in_strings_do_not_nest(text: bytes) -> None:
    flat = b"[" + b",".join([b'"' + text + b'"', b"[{}]"] * 300) + b"]"
    codec.decode_any(flat)
    with pytest.raises(codec.ProtocolError, match="nested deeper"):
        codec.decode_any(b"[" * 200 + flat + b"]" * 200)


def test_kubernetes_and_cadvisor_structures_are_open() -> None:
    line = b'{"id":1,"ok":{"num_cores":4,"vendor_id":"x","topology":null}}'
    assert codec.decode_answer(line, 1, "discover") == MachineInfo(num_cores=4)


@pytest.mark.parametrize(
    ("line", "operation", "complaint"),
    [
        (b'{"id":1,"ok":{"cpus":5}}', "assign", "in ok: .*CPU set: a string"),
        (b'{"id":1,"refused":{"message":"m"}}', "start", "missing field stage"),
        (b'{"id":1,"refused":{"message":"m"}}', "assign", "missing field stage or reason"),
        (b'{"id":1,"refused":{"stage":"soon","message":"m"}}', "start", "soon"),
        (
            b'{"id":1,"ok":{"hint":{"numa":[1,0],"preferred":true},"admit":true}}',
            "merge",
            "not sorted",
        ),
        (b'{"id":1,"ok":{"hint":{"numa":"0","preferred":true},"admit":true}}', "merge", "list"),
        (b"\xff", "state", "the line is not UTF-8"),
        (b'{"id":1,"fault":' + b"[" * 100_000, "state", "nested too deeply"),
    ],
)
def test_a_bad_answer_is_refused_with_its_location(
    line: bytes, operation: str, complaint: str
) -> None:
    with pytest.raises(codec.ProtocolError, match=complaint):
        codec.decode_answer(line, 1, operation)


@pytest.mark.parametrize(
    ("line", "operation", "key"),
    [
        (b'{"id":1,"id":1,"ok":{}}', "remove", "id"),
        (b'{"id":1,"ok":{},"ok":{}}', "remove", "ok"),
        (b'{"id":1,"ok":{"shared":"0","pods":{"a":{},"b":{},"\\u0061":{}}}}', "state", "a"),
        (b'{"id":1,"ok":{"shared":"0","pods":{"a:":{},"a\\u003A":{}}}}', "state", "a:"),
        (b'{"id":1,"refused":{"reason":"no","message":"x:y","message":""}}', "admit", "message"),
        (b'{"id":1,"fault":{"message":"","message":":","trace":"a:b"}}', "state", "message"),
        (b'{"id":1,"ok":{"num_cores":1,"vendor":{"x":1,"x":2}}}', "discover", "x"),
    ],
)
def test_a_repeated_key_is_refused_by_name(line: bytes, operation: str, key: str) -> None:
    with pytest.raises(codec.ProtocolError, match=f"an object has the key '{key}' more than once"):
        codec.decode_answer(line, 1, operation)


@pytest.mark.parametrize(
    "text", ['{"a":1}', "a:b", r'\":{"a":1,"a":2}', "\u003a", "9" * 30, "\\", '"[' * 300, "\n:"]
)
def test_keys_in_strings_are_not_repeated_keys(text: str) -> None:
    answer = messages.State(CPUSet([0]), {text: {}, f"{text}{text}": {}}, {"file": text})
    line = codec.encode_answer(1, answer)
    assert codec.decode_answer(line, 1, "state") == answer


def test_arguments_are_decoded_by_their_operation() -> None:
    line = codec.encode_request(1, "remove", messages.RemoveArgs("uid-1", "init"))
    request = codec.decode(line, codec.Request)
    assert codec.decode_args(request) == messages.RemoveArgs("uid-1", "init")


def test_an_unknown_operation_is_refused() -> None:
    request = codec.decode(b'{"id":1,"op":"dance","args":{}}', codec.Request)
    with pytest.raises(codec.ProtocolError, match="unknown operation 'dance'"):
        codec.decode_args(request)


def test_messages_convert_to_plain_values_and_back() -> None:
    answer = messages.Assigned(CPUSet([1, 2]))
    assert codec.to_plain(answer) == {"cpus": "1-2"}
    assert codec.from_plain({"cpus": "1-2"}, messages.Assigned) == answer
    with pytest.raises(codec.ProtocolError, match="cpus"):
        codec.from_plain({"cpus": 3}, messages.Assigned)


def test_only_sets_have_a_custom_encoding() -> None:
    with pytest.raises(NotImplementedError, match="no JSON form for object"):
        codec.encode(object())


def test_every_operation_of_the_page_is_in_the_table() -> None:
    assert list(OPERATIONS) == [
        "hello",
        "start",
        "admit",
        "resize",
        "remove",
        "end",
        "devices",
        "hints",
        "state",
        "reconcile",
        "merge",
        "assign",
        "discover",
        "coverage",
    ]


def test_events_round_trip_without_a_torn_last_line() -> None:
    event = events.RunEnded(at=1.5, complete=True, outcomes={"pass": 3})
    line = events.write_line(event)
    assert list(saved_events.read_lines([line, line[:-5]])) == [event]


def test_a_malformed_event_is_named_by_line() -> None:
    with pytest.raises(codec.ProtocolError, match="line 1"):
        list(saved_events.read_lines([b"{}\n"]))
