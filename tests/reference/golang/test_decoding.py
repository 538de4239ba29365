from __future__ import annotations

from typing import Any

import pytest

from numaproof.reference.golang import decoding, syntax


def decode(text: bytes, kind: decoding.Kind) -> Any:
    found, error = decoding.decode_partly(text, kind)
    if error:
        raise syntax.GoJSONError(error)
    return found


STATE = decoding.Fields(
    "state.Checkpoint",
    {
        "policyName": decoding.Text(),
        "entries": decoding.Keyed(
            decoding.Keyed(decoding.Text(), "map[string]string"), "map[string]map[string]string"
        ),
        "extra": decoding.Truth(),
        "checksum": decoding.Unsigned("checksum.Checksum"),
    },
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "unexpected end of JSON input"),
        (b'{"policyName":"sta', "unexpected end of JSON input"),
        (b"\x00\x01{", r"invalid character '\x00' looking for beginning of value"),
        (b"{} x", "invalid character 'x' after top-level value"),
        (b"{5", "invalid character '5' looking for beginning of object key string"),
        (b'{"a" 5', "invalid character '5' after object key"),
        (b'{"a":5 "b"', "invalid character '\"' after object key:value pair"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b'"a\nb"', r"invalid character '\n' in string literal"),
        (rb'"\q"', "invalid character 'q' in string escape code"),
        (rb'"\u12x4"', r"invalid character 'x' in \u hexadecimal character escape"),
        (b"trux", "invalid character 'x' in literal true (expecting 'e')"),
        (b"-x", "invalid character 'x' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"1ex", "invalid character 'x' in exponent of numeric literal"),
        (b"01", "invalid character '1' after top-level value"),
        (b"'a'", r"invalid character '\'' looking for beginning of value"),
        (b"\\", r"invalid character '\\' looking for beginning of value"),
        ("é".encode(), "invalid character 'Ã' looking for beginning of value"),
        (b"\x85", r"invalid character '\u0085' looking for beginning of value"),
        (b"t rue", "invalid character ' ' in literal true (expecting 'r')"),
        (b"[" * 10001, "invalid character '[' exceeded max depth"),
    ],
)
def test_bad_syntax_is_reported_in_the_words_of_go(text: bytes, message: str) -> None:
    with pytest.raises(syntax.GoJSONError) as caught:
        decode(text, STATE)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[]", "array into Go value of type state.Checkpoint"),
        (b"true", "bool into Go value of type state.Checkpoint"),
        (b'{"policyName":5}', "number into Go struct field Checkpoint.policyName of type string"),
        (
            b'{"entries":{"u":{"a":{}}}}',
            "object into Go struct field Checkpoint.entries of type string",
        ),
        (
            b'{"checksum":1.5}',
            "number 1.5 into Go struct field Checkpoint.checksum of type checksum.Checksum",
        ),
        (
            b'{"checksum":-1,"policyName":[]}',
            "number -1 into Go struct field Checkpoint.checksum of type checksum.Checksum",
        ),
        (
            b'{"checksum":"1"}',
            "string into Go struct field Checkpoint.checksum of type checksum.Checksum",
        ),
    ],
)
def test_the_first_value_of_a_wrong_type_is_named_with_its_place(text: bytes, message: str) -> None:
    with pytest.raises(syntax.GoJSONError) as caught:
        decode(text, STATE)
    assert str(caught.value) == f"json: cannot unmarshal {message}"


def test_names_match_in_any_case_and_unknown_ones_are_passed_over() -> None:
    found = decode(b' {"POLICYNAME":"x","nobody":[1,null,false],"Extra":true} ', STATE)
    assert found == {"policyName": "x", "entries": None, "extra": True, "checksum": 0}


def test_null_changes_no_plain_field_and_a_repeated_object_adds_to_the_first() -> None:
    text = b'{"entries":{"u":{"a":"1"}},"entries":{"v":{}},"policyName":"p","policyName":null}'
    found = decode(text, STATE)
    assert found["entries"] == {"u": {"a": "1"}, "v": {}}
    assert found["policyName"] == "p"


def test_escapes_are_read_and_lone_surrogates_replaced() -> None:
    text = rb'{"policyName":"\u0041\n\ud83d\ude00\ud800"}'
    assert decode(text, STATE)["policyName"] == "A\n\U0001f600�"


def test_null_for_the_whole_is_the_zero_value() -> None:
    assert decode(b"null", STATE)["checksum"] == 0


NUMBERED = decoding.Keyed(
    decoding.Listed(decoding.Signed(), "[]int"), "map[int][]int", numbered=True
)


def test_integers_with_a_sign_lists_and_numbered_keys_are_read() -> None:
    assert decode(b'{"10":[1,-2],"-3":[],"4":null}', NUMBERED) == {
        10: [1, -2],
        -3: [],
        4: None,
    }


def test_what_is_null_or_absent_has_no_object_unless_it_was_made_before() -> None:
    inner = decoding.Fields("state.Inner", {"a": decoding.Signed()}, pointer=True)
    kind = decoding.Fields(
        "state.Outer",
        {
            "absent": decoding.Keyed(inner, "map[string]*state.Inner"),
            "made": decoding.Keyed(inner, "map[string]*state.Inner", made=True),
            "gone": decoding.Keyed(inner, "map[string]*state.Inner", made=True),
            "pointers": decoding.Keyed(inner, "map[string]*state.Inner"),
        },
    )
    text = b'{"gone":null,"pointers":{"n":null,"z":{},"p":{"a":1}}}'
    assert decode(text, kind) == {
        "absent": None,
        "made": {},
        "gone": None,
        "pointers": {"n": None, "z": {"a": 0}, "p": {"a": 1}},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"x":[]}', "number x into Go value of type int"),
        (b'{"1":{}}', "object into Go value of type []int"),
        (b'{"1":[1.5]}', "number 1.5 into Go value of type int"),
        (b'{"1":[9223372036854775808]}', "number 9223372036854775808 into Go value of type int"),
        (b'{"1":["a"]}', "string into Go value of type int"),
    ],
)
def test_lists_and_numbered_keys_of_a_wrong_type_are_reported(text: bytes, message: str) -> None:
    with pytest.raises(syntax.GoJSONError) as caught:
        decode(text, NUMBERED)
    assert str(caught.value) == f"json: cannot unmarshal {message}"


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"b":[1.5,-2e3,{"c":null}],"a":true}',
        b" [ ] ",
        b'{"":{}}',
        b"[0,1e+5,-0.25E-1]",
        b"[false,null,true]",
        '"é\u2028\x7f"'.encode(),
        b"123456789012345678901234567890",
    ],
)
def test_a_text_is_read_alike_with_and_without_an_escape_in_it(text: bytes) -> None:
    assert syntax.parse(b"[" + text + b',"\\u0041"]') == [syntax.parse(text), "A"]


@pytest.mark.parametrize("text", [b"NaN", b"[-Infinity]", b'"\x00"', b"\xef\xbb\xbf{}"])
def test_what_only_python_takes_for_json_is_refused(text: bytes) -> None:
    with pytest.raises(syntax.GoJSONError, match="invalid character"):
        syntax.parse(text)


def test_bytes_that_are_no_utf_8_become_replacement_characters() -> None:
    assert syntax.parse(b'"a\xff"') == "a\ufffd"
