<<<<<<< HEAD
"""The excerpts in the guide to fuzzing are in the files that they are from."""
=======
"""The guides, followed from the first command to the last."""
>>>>>>> origin/main

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/fuzzing.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


<<<<<<< HEAD
=======
def shell(command: str, folder: Path) -> str:
    """Returns the output of a command on a terminal as wide as the pages."""
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": scripts, "PYTHONUTF8": "1", "PYTEST_ADDOPTS": ""}
    ended = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        timeout=500,
        check=False,
    )
    return ended.stdout.decode() + ended.stderr.decode()


def in_order(expected_lines: list[str], output: str) -> bool:
    """Returns whether the lines appear in this order, with others between; ``…`` is any text."""
    lines = iter(output.splitlines())
    forms = [re.escape(line).replace("…", r"[^()]+") for line in expected_lines]
    return all(any(re.fullmatch(form, line) for line in lines) for form in forms)


def commands(block: str) -> list[tuple[str, list[str]]]:
    """Returns the commands of a block, each with the output it shows."""
    parts = [part.splitlines() for part in block.split("$ ") if part]
    return [(command, said) for command, *said in parts]


def apply_diff(diff: str, file: Path) -> None:
    """Applies a diff to a file."""
    new = "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[:1] != "-")
    old = "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[:1] != "+")
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "program", "count"),
    [
        ("fuzzing.md", "driver.py", 8),
        ("write-an-adapter.md", "my-driver/adapter.py", 6),
        ("run-nodes.md", "node/kubelet.yaml", 6),
    ],
)
def test_every_command_of_a_guide_prints_the_shown_output(
    tmp_path: Path, page: str, program: str, count: int
) -> None:
    folder = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", folder)
    done = 0
    for kind, block in BLOCK.findall((ROOT / "docs" / page).read_text()):
        if kind == "diff":
            apply_diff(block, folder / program)
        for command, said in commands(block) if kind == "console" else ():
            written = shell(command, folder)
            assert in_order(said, written), f"{command}\n{written}"
            done += 1
    assert done == count


>>>>>>> origin/main
@pytest.mark.parametrize("file", ["driver.py", "test_driver.py", "tox.ini"])
def test_excerpts_in_guides_match_their_files(file: str) -> None:
    text = (ROOT / "examples" / file).read_text()
    kind = "ini" if file == "tox.ini" else "python"
    shown = [block for one, block in BLOCK.findall(GUIDE) if one == kind]
    ours = [block for block in shown if block.splitlines()[0] in text]
    assert ours
    for block in ours:
        for paragraph in block.split("\n\n"):
            assert paragraph.strip("\n") in text
