"""`check` and `doctor` describe malformed responses in the same plain English."""

from __future__ import annotations

import pytest

from numaproof.conformance.doctor import lines
from numaproof.protocol import codec

NOT_JSON = "the line is not JSON: "
LINES = [
    (
        b'{"id":1,"ok":{"cpus":"\xff"}}',
        "the line is not UTF-8: byte 23 (0xff) does not start a character",
    ),
    (b'{"id":1,"ok":{"cpus":NaN}}', "the line has NaN, which JSON does not allow"),
    (
        rb'{"id":1,"ok":{"cpus":"\ud800"}}',
        "the line has half of a surrogate pair, which is not a character",
    ),
    (b'\xef\xbb\xbf{"id":1}', "the line begins with a byte order mark"),
    (b"", "the line is empty"),
    (b"done", NOT_JSON + "a value is missing at character 1"),
    (b'{"id":1} x', NOT_JSON + "more text follows the object at character 10"),
    (b'{"id":1', NOT_JSON + "a comma or a closing bracket is missing at character 8"),
    (b"{id:1}", NOT_JSON + "a field name in double quotes is missing at character 2"),
    (b'{"id":1,"ok":"a\tb"}', NOT_JSON + "a control character in a string is not escaped"),
    (b'{"id":1,"ok":"a', NOT_JSON + "a string is not closed at character 14"),
    (b'{"id":' + b"9" * 5000 + b"}", NOT_JSON + "a number has too many digits"),
    (b"{'id': 1}", "the line is not JSON but a Python dictionary"),
    (b"[1]", "the line is not a JSON object but a list"),
    (b"true", "the line is not a JSON object but true or false"),
    (b"1", "the line is not a JSON object but a number"),
]


@pytest.mark.parametrize(("line", "words"), LINES, ids=[words for _, words in LINES])
def test_check_and_doctor_use_the_same_words(line: bytes, words: str) -> None:
    with pytest.raises(codec.ProtocolError) as caught:
        codec.decode_answer(line, 1, "assign")
    assert str(caught.value).startswith(words)
    assert lines.read(line, 1, "assign").findings[0].wrong == str(caught.value)


def test_a_long_set_is_not_repeated_in_the_error() -> None:
    many = b",".join(b"%d" % node for node in range(1023, -1, -1))
    for operation, body in (
        ("assign", b'{"cpus":"' + b"1," * 9000 + b'1"}'),
        ("merge", b'{"admit":true,"hint":{"preferred":true,"numa":[' + many + b"]}}"),
    ):
        with pytest.raises(codec.ProtocolError) as caught:
            codec.decode_answer(b'{"id":1,"ok":' + body + b"}", 1, operation)
        assert len(str(caught.value)) < 160
