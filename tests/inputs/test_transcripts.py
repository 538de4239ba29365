"""Transcripts of a terminal are taken apart; other texts stay whole."""

from __future__ import annotations

import pytest

from numaproof.inputs import transcripts

OUTPUT = "kind: Pod\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("prompt", "host"),
    [
        ("$ ", ""),
        ("[root@worker-3 ~]# ", "worker-3"),
        ("core@worker-3 ~ $ ", "worker-3"),
        ("ana@worker-3:/var/lib/kubelet$ ", "worker-3"),
        ("worker-3:~ # ", "worker-3"),
        ("sh-5.1# ", ""),
        ("% ", ""),
        ("\u276f ", ""),
        ("PS C:\\Users\\ana> ", ""),
        ("(venv) ana@laptop:~$ ", "laptop"),
    ],
)
def test_a_prompt_separates_a_command_from_its_output(prompt: str, host: str) -> None:
    (part,) = transcripts.parts(f"{prompt}cat a.yaml\n{OUTPUT}{prompt}\n")
    assert part.host == host
    assert part.command == "cat a.yaml"
    assert part.output.lstrip("\n") == OUTPUT


def test_outputs_keep_their_line_numbers() -> None:
    *_, last = transcripts.parts(f"$ cat a.yaml\n{OUTPUT}$ cat b.yaml\n{OUTPUT}")
    assert last.output == "\n" * 4 + OUTPUT


@pytest.mark.parametrize(
    "text",
    [
        OUTPUT,
        f"# cat a.yaml\n{OUTPUT}",
        f"# {OUTPUT}",
        "$ cat <<EOF > a.yaml\nkind: Pod\nEOF\n",
        "env: $HOME\n",
        "mail: ana@worker-3 # the owner\n",
    ],
)
def test_other_texts_are_no_transcripts(text: str) -> None:
    assert transcripts.parts(text) == ()
    assert transcripts.outputs(text) == text


def test_outputs_become_documents_on_their_lines() -> None:
    text = f"$ cat a.yaml\n{OUTPUT}$ cat b.yaml\n{OUTPUT}"
    assert transcripts.outputs(text) == f"---\n{OUTPUT}---\n{OUTPUT}"
