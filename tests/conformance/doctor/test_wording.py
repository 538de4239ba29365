"""Every finding has its texts, and every text is used."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from numaproof.conformance.doctor import wording
from numaproof.conformance.doctor.wording import finding

TEXTS = wording.wording()
SOURCES = [file.read_text("utf-8") for file in sorted(Path(wording.__file__).parent.glob("*.py"))]


def test_findings_in_the_code_and_the_wording_are_equal() -> None:
    used, strings = set(), set()
    for node in (node for source in SOURCES for node in ast.walk(ast.parse(source))):
        match node:
            case ast.Call(func=ast.Attribute(attr="note") | ast.Name(id="finding"), args=[first]):
                parts = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
                used |= {one.value for one in parts if isinstance(one, ast.Constant)}
            case ast.Constant(value=str(text)):
                strings.add(text)
    assert used <= TEXTS.findings.keys()
    assert TEXTS.findings.keys() <= strings | {"enum", "minimum", "pattern", "uniqueItems"}


def test_placeholders_in_values_are_not_expanded() -> None:
    said = finding("must-not-be-refused", message="costs $5, or $message")
    assert said.wrong == "this must not be refused: costs $5, or $message"


def test_texts_have_no_final_full_stop() -> None:
    texts = [text for one in TEXTS.findings.values() for text in (one.wrong, one.right)]
    assert not [text for text in texts if re.search(r"[^.]\.$", text)]
