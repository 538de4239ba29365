"""A trial says what a kubelet did not do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from builders.scripts import kubelet_script
from numaproof.kubelet.binary import Kubelet, identify
from numaproof.kubelet.trial import Trial, _what
from numaproof.protocol import messages

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("script", "arguments", "timeout", "found", "fix"),
    [
        (
            "echo no space left; exit 1",
            ("--v=5",),
            60,
            "start: refused: no space left",
            "check --kubelet-arg",
        ),
        (
            "echo panic: no cgroups",
            (),
            60,
            "start: panic: no cgroups",
            "add what it needs with --kubelet-arg",
        ),
        (
            "exec tail -f /dev/null",
            (),
            1,
            "no answer to ",
            "give it more time with --timeout",
        ),
    ],
)
@pytest.mark.usefixtures("namespaces_permitted")
def test_a_kubelet_that_does_not_start_fails_its_trial(
    script: str, arguments: tuple[str, ...], timeout: float, found: str, fix: str, tmp_path: Path
) -> None:
    kubelet = identify(kubelet_script(tmp_path / "kubelet", script))
    check = Trial(kubelet, arguments, timeout, "tests").check(tmp_path)
    assert check.name == "trial"
    assert check.state.startswith(found)
    assert check.fix == fix


@pytest.mark.usefixtures("namespaces_permitted")
def test_a_file_that_is_no_kubelet_fails_its_trial(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    check = Trial(Kubelet(file, "1.37.0", "1.37"), (), 60, "tests").check(tmp_path)
    assert "not executable" in check.state
    assert check.fix


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (messages.AdmissionRefused("UnexpectedAdmissionError", "no CPUs"), "refused: no CPUs"),
        (messages.Unsupported("start"), "unsupported: start"),
        (messages.Fault("it crashed"), "it crashed"),
        (messages.Done(), "an unexpected answer"),
    ],
)
def test_other_answers_are_described(answer: messages.Answer, text: str) -> None:
    assert _what(answer) == text
