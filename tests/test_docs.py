"""Files, links, modules, commands and tox environments named on pages exist."""

from __future__ import annotations

import configparser
import re
import shlex
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from numaproof import fakesys
from numaproof.cli.kubectl_plugin import collect
from numaproof.cli.main import cli
from numaproof.conformance.cases import loading
from numaproof.plugin.checking import Checker

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
FOLDERS = sorted(
    folder.name
    for folder in ROOT.iterdir()
    if folder.is_dir()
    and folder.name not in {"build", "dist", "__pycache__", "numaproof-report", "numaproof-replay"}
    and folder.name[0] != "."
)
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "adapters").rglob("*.md")),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
OURS = re.compile(rf"(?<![\w/.~-])(?:{'|'.join(FOLDERS)})/[\w./*-]*\w\*?")
PATH = re.compile(r"[\w-]+\.(?:py|sh)|(?:[a-z_][\w.-]*/)+[\w.*-]*")
ELSEWHERE = (
    *("numaproof-report/", "site/"),  # reports
    *("pkg/", "k8s.io/", "device-plugins/", "kubernetes.io/"),  # the kubelet
    *("sys/", "proc/", "cpu/nohz_full", "cpuN/", "cache/index3/"),  # machines
    *("vendor.example/", "target/", "releases/MINOR.mod"),  # a user's
)
"""What paths begin with that are not in the repository."""
NAME = re.compile(r"(?<![\w./-])numaproof(?:\.[A-Za-z_]\w*)+")
CASE_RUN = re.compile(r"`([a-z0-9-]+) \[([a-z0-9-]+)\]`")
COMMAND = re.compile(r"(?<![\w./-])(?<!from )(?<!kubectl )numaproof ([a-z].*)")
PLUGIN = re.compile(r"(?<!`)kubectl numaproof ([a-z].*)")

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
OF_OTHERS = {*(ROOT / "adapters").glob("*/*.md")} - {ROOT / "adapters" / "kubelet" / "README.md"}
"""Pages about other implementations, which name those projects' files."""
own_pages = pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page not in OF_OTHERS],
    ids=lambda page: str(page.relative_to(ROOT)),
)


def prose(page: Path) -> str:
    """Returns a page without code blocks."""
    return FENCE.sub("", page.read_text("utf-8"))


def code_texts(page: Path) -> Iterator[str]:
    """Yields all code on a page: lines of code blocks, with continuations joined, and spans."""
    text = page.read_text("utf-8")
    for _, block in FENCE.findall(text):
        yield from block.replace("\\\n", " ").splitlines()
    yield from SPAN.findall(FENCE.sub("", text))


@cache
def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page: those of its headings on GitHub, and explicit ones."""
    heads = HEADING.findall(prose(page))
    made = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
    return made | set(ANCHOR.findall(prose(page)))


@pages
def test_relative_links_lead_to_files_and_headings(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


@own_pages
def test_paths_in_the_repository_exist(page: Path) -> None:
    found = [path for text in code_texts(page) for path in OURS.findall(text)]
    assert not [path for path in found if not list(ROOT.glob(path))]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.parent != ROOT],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_column_of_a_table_has_a_heading(page: Path) -> None:
    # Screen readers say it with every cell.
    headings = re.findall(r"(?m)^(\|.*\|)\n\|(?:-+\|)+$", prose(page))
    assert [one for one in headings if re.search(r"\|\s*\|", one)] == []


def test_the_files_under_where_to_look_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    rows = text.partition("## Where to look")[2].partition("\n## ")[0].splitlines()
    places = [place for row in rows for place in SPAN.findall(row[2:].partition(" | ")[2])]
    missing = [
        place
        for place in places
        if not any(
            (folder / place).exists() for folder in (ROOT, ROOT / "reference", ROOT / "conformance")
        )
    ]
    assert places
    assert not missing


@own_pages
def test_paths_named_by_their_end_exist(page: Path) -> None:
    spans = [span for span in SPAN.findall(prose(page)) if PATH.fullmatch(span)]
    named = [span.rstrip("/") for span in spans if not span.startswith(ELSEWHERE)]
    assert [one for one in named if not is_path(one)] == []


@cache
def files() -> list[str]:
    """Every path in the repository; a module's without its suffix as well."""
    found = [one for name in FOLDERS for one in (ROOT / name, *(ROOT / name).rglob("*"))]
    modules = [one.with_suffix("") for one in found if one.suffix == ".py"]
    return [one.relative_to(ROOT).as_posix() for one in [*found, *modules, *ROOT.glob("*.*")]]


def is_path(end: str) -> bool:
    """Whether a file, a folder or a module has a path that ends so."""
    return any(fnmatchcase(file, end) or fnmatchcase(file, f"*/{end}") for file in files())


def test_a_path_that_no_file_has_is_noticed() -> None:
    assert is_path("judging/oracle.py")
    assert is_path("execution/runner")
    assert not is_path("judging/no_such_module.py")
    assert not is_path("no-such-folder")


@pages
def test_dotted_names_can_be_imported(page: Path) -> None:
    for text in code_texts(page):
        for name in NAME.findall(text):
            # `numaproof` is also a pytest fixture.
            assert hasattr(Checker, name.removeprefix("numaproof.")) or import_name(name)


def import_name(name: str) -> object:
    """Returns a module or its attribute.

    Raises:
        ImportError, AttributeError: it doesn't exist.
    """
    try:
        return import_module(name)
    except ImportError:
        module, _, attribute = name.rpartition(".")
        return getattr(import_name(module), attribute)


@own_pages
def test_cases_and_machines_of_case_runs_exist(page: Path) -> None:
    for case, machine in CASE_RUN.findall(prose(page)):
        assert case in {one.id for one in loading.bundled_cases()}
        assert machine in fakesys.bundled_profiles()


def subcommand(words: list[str]) -> tuple[click.Command, list[str]]:
    """Returns the command at the start of these words, and the remaining words."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and re.fullmatch(r"[a-z-]+", words[0]):
        assert words[0] in command.commands, f"no command {words[0]}"
        _, found, words = command.resolve_command(click.Context(command), words)
        assert found is not None
        command = found
    return command, words


@pages
def test_commands_and_their_options_exist(page: Path) -> None:
    for text in code_texts(page):
        for line in COMMAND.findall(text.partition(" #")[0]):
            assert not command_line_problems(line), line
        for line in PLUGIN.findall(text.partition(" #")[0]):
            assert not unknown_options(collect, shlex.split(line)), line


def command_line_problems(line: str) -> set[str]:
    """Returns the options in a command line that the command lacks."""
    try:
        words = shlex.split(re.split(r"\s[|>&;]|\)", line)[0])
    except ValueError:
        return set()  # prose
    return unknown_options(*subcommand(words))


def unknown_options(command: click.Command, words: list[str]) -> set[str]:
    """Returns the options among the words that a command lacks."""
    known = {name for option in command.params for name in option.opts} | {"--help"}
    known |= {name for option in command.params for name in option.secondary_opts}
    return {word.partition("=")[0] for word in words if re.match("--[a-z]", word)} - known


def all_commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yields every command with the words that call it."""
    yield path, group
    for name in group.commands:
        command, _ = subcommand([*path, name])
        if isinstance(command, click.Group):
            yield from all_commands(command, *path, name)
        else:
            yield (*path, name), command


COMMANDS = {**dict(all_commands(cli)), ("kubectl", "numaproof"): collect}
OPTIONS = {
    name
    for command in COMMANDS.values()
    for one in command.params
    for name in (*one.opts, *one.secondary_opts)
} | {"--help"}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_help_of_a_command_names_commands_and_options_that_exist(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    texts = [command.help or "", *(getattr(one, "help", None) or "" for one in command.params)]
    for text in texts:
        for line in COMMAND.findall(text.replace("\\\n", " ")):
            assert not command_line_problems(line.partition("`")[0]), line
        prose = re.sub(r'^ *kubectl .*|"[^"]*"', "", text, flags=re.MULTILINE)
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", prose))
        assert named <= OPTIONS, text


@pytest.mark.parametrize(
    "path", [path for path, one in COMMANDS.items() if path and isinstance(one, click.Group)]
)
def test_the_verbs_of_a_group_are_its_commands(path: tuple[str, ...]) -> None:
    group = COMMANDS[path]
    assert isinstance(group, click.Group)
    listed = re.match(r"(\w+(?:, \w+)*) and (\w+) ", group.help or "")
    verbs = {*listed[1].lower().split(", "), listed[2]} if listed else set()
    assert verbs <= set(group.commands)


def environments(section: str) -> Iterator[str]:
    """Returns the environments of a section in tox.ini, such as ``testenv:{a,b}-c``."""
    before, brace, rest = section.removeprefix("testenv:").partition("{")
    choices, _, after = rest.partition("}")
    yield from (f"{before}{one}{after}" for one in choices.split(",")) if brace else (before,)


@pages
def test_tox_environments_exist(page: Path) -> None:
    file = configparser.ConfigParser()
    file.read([ROOT / "tox.ini", ROOT / "examples/tox.ini"])
    names = {name for section in file for name in environments(section)}
    for text in code_texts(page):
        for name in re.findall(r"tox (?:run )?-e ([\w-]+)", text):
            assert name in names, name


@pytest.mark.parametrize(
    ("page", "begins", "source"),
    [
        ("quality.md", "@seeds", "quality/bugs/cpus.py"),
    ],
)
def test_examples_taken_from_a_file_are_in_it(page: str, begins: str, source: str) -> None:
    blocks = [block for _, block in FENCE.findall((ROOT / "docs" / page).read_text("utf-8"))]
    (example,) = [block for block in blocks if block.startswith(begins)]
    assert example in (ROOT / source).read_text("utf-8")
