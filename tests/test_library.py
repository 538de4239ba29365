"""The public names of numaproof as a library."""

from __future__ import annotations

import subprocess
import sys

import pytest

import numaproof
from numaproof.conformance.opening import TargetError
from numaproof.conformance.selection.patterns import SelectionError

UNTOUCHED = """
import sys
before = set(sys.modules)
import numaproof
print(sorted(set(sys.modules) - before))
"""


def test_importing_numaproof_loads_nothing_else() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", UNTOUCHED], capture_output=True, text=True, check=True
    )
    loaded = ended.stdout
    assert "'numaproof'" in loaded
    assert not any(name in loaded for name in ("numaproof.", "atexit", "msgspec", "gc"))


@pytest.mark.parametrize("name", numaproof.__all__)
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    assert getattr(numaproof, name).__doc__
    assert f"`{name}`" in (numaproof.__doc__ or "")


def test_there_are_no_other_public_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        numaproof.chekc  # type: ignore[attr-defined]  # noqa: B018


def test_check_plays_the_selected_cases() -> None:
    *_, finished, ended = numaproof.check(select=["example-*"], machines=["laptop-4c8t"])
    assert isinstance(finished, numaproof.events.CaseFinished)
    assert (finished.machine, finished.outcome) == ("laptop-4c8t", "pass")
    assert isinstance(ended, numaproof.events.RunEnded)
    assert ended.complete


def test_check_reports_wrong_arguments() -> None:
    with pytest.raises(SelectionError, match="no case matches"):
        next(numaproof.check(select=["nothing-*"]))
    with pytest.raises(TargetError, match="the command is empty"):
        next(numaproof.check(" ", select=["example-*"]))


def test_the_reference_answers_calls() -> None:
    answer = numaproof.Reference().call("hello", numaproof.messages.HelloArgs((1, 1), "mine"))
    assert isinstance(answer, numaproof.messages.Hello)
