"""The kubelet adapter reads Go's coverage counters in the running program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCKS = Path(__file__).parents[2] / "adapters" / "kubelet" / "blocks.go"

MAIN = """\
package main

import (
	"encoding/json"
	"os"

	"example.com/program/counted"
)

func main() {
	names := readBlockNames("example.com/program/")
	answers := [][]string{}
	for _, number := range []int{1, 1, -1} {
		counted.Sign(number)
		if names != nil {
			reached, err := names.reached()
			if err != nil {
				panic(err)
			}
			answers = append(answers, reached)
		}
	}
	json.NewEncoder(os.Stdout).Encode(answers)
}
"""

COUNTED = """\
package counted

type sign struct{ negative bool }

func (s *sign) flip() { s.negative = !s.negative }

func Sign(number int) bool {
	s := &sign{}
	if number < 0 {
		s.flip()
	}
	return s.negative
}
"""

ALWAYS = ["counted/counted.go:7.28 Sign", "counted/counted.go:12.2 Sign"]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[list[str]]]:
    """Builds the program with flags, runs it and returns the blocks that it reports."""
    if not shutil.which("go"):
        pytest.skip("Go is not installed")
    folder = tmp_path_factory.mktemp("blocks")
    shutil.copy(BLOCKS, folder)
    (folder / "main.go").write_text(MAIN)
    (folder / "go.mod").write_text("module example.com/program\n\ngo 1.24\n")
    (folder / "counted").mkdir()
    (folder / "counted" / "counted.go").write_text(COUNTED)

    def run(*flags: str, **environment: str) -> list[list[str]]:
        subprocess.run(["go", "build", "-o", "program", *flags, "."], cwd=folder, check=True)
        ended = subprocess.run(
            [folder / "program"],
            env={**os.environ, **environment},
            capture_output=True,
            check=True,
        )
        found: list[list[str]] = json.loads(ended.stdout)
        return found

    return run


ATOMIC = ("-cover", "-covermode=atomic", "-coverpkg=./...")

pytestmark = pytest.mark.commands


def test_blocks_are_those_that_ran_since_the_last_call(
    build: Callable[..., list[list[str]]],
) -> None:
    first, again, negative = build(*ATOMIC)
    assert [one for one in first if one.startswith("counted/")] == sorted(ALWAYS)
    counted = [one for one in again if one.startswith("counted/")]
    assert counted == sorted(ALWAYS)
    assert set(negative) - set(again) == {
        "counted/counted.go:5.23 *sign.flip",
        "counted/counted.go:9.16 Sign",
    }


def test_a_program_without_atomic_counters_reports_no_blocks(
    build: Callable[..., list[list[str]]], tmp_path: Path
) -> None:
    assert build() == []
    assert build("-cover", "-coverpkg=./...") == []
    assert build(*ATOMIC, GOCOVERDIR=str(tmp_path)) == []
