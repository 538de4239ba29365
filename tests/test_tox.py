"""The README's test command runs every test on the interpreter that starts it."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEFAULT = ("tests", "lint", "type")


@pytest.fixture
def tox() -> configparser.ConfigParser:
    file = configparser.ConfigParser(interpolation=None)
    file.read(ROOT / "tox.ini")
    return file


def test_plain_tox_runs_the_tests_the_linter_and_the_type_checker(
    tox: configparser.ConfigParser,
) -> None:
    assert tox["tox"]["env_list"] == ", ".join(DEFAULT)


@pytest.mark.parametrize("name", ["testenv", *(f"testenv:{name}" for name in DEFAULT)])
def test_plain_tox_requires_no_particular_interpreter(
    tox: configparser.ConfigParser, name: str
) -> None:
    assert "base_python" not in tox[name]


def test_plain_tox_deselects_no_test(tox: configparser.ConfigParser) -> None:
    assert tox["testenv:tests"]["commands"].strip() == "pytest -n 2 --dist worksteal {posargs}"


def test_a_missing_interpreter_is_an_error(tox: configparser.ConfigParser) -> None:
    assert "skip_missing_interpreters" not in tox["tox"]
