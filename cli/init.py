"""`numaproof init`: creates an adapter that passes from its first run."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import dataclass
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path

import click
import msgspec

from numaproof.cli.choice import Choice
from numaproof.cli.outputs import OUTPUT_FOLDER
from numaproof.inputs.shell_words import quote_words
from numaproof.protocol.releases import NEWEST

SOURCE_FILE = "requirements-conformance.txt"
_TEMPLATES = files("numaproof.cli") / "templates" / "init"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_COMMON = {
    "tox.ini": "common/tox.ini",
    SOURCE_FILE: "common/requirements-conformance.txt",
    ".gitignore": "common/gitignore",
    ".github/workflows/conformance.yml": "common/conformance.yml",
}
"""The files of every adapter: path and template."""


@dataclass(frozen=True)
class Skeleton:
    """The template of an adapter in one language.

    Attributes:
        title: the language's name.
        files: the language's own files; users fill in the first.
        command: the command that runs the adapter.
        tests: the command that runs the adapter's own tests.
        build: the command that builds the adapter, if any.
        ignore_patterns: build and test output, as patterns for .gitignore.
        program: the language's tool, which tox must be allowed to run.
        variables: environment variables that the tool reads.
        action: the GitHub action that installs the tool, if runners don't have it.
        settings: the inputs of that action.
    """

    title: str
    files: tuple[str, ...]
    command: str
    tests: str
    build: str = ""
    ignore_patterns: tuple[str, ...] = ()
    program: str = ""
    variables: tuple[str, ...] = ()
    action: str = ""
    settings: tuple[str, ...] = ()


SKELETONS = msgspec.json.decode(
    _TEMPLATES.joinpath("skeletons.json").read_bytes(), type=dict[str, Skeleton]
)
"""The adapters that `numaproof init` can write, by language."""


def _install_source() -> str:
    """Returns the pip requirement that installs this numaproof elsewhere.

    pip records where it installed a package from, unless it came from an index (PEP 610).
    """
    from numaproof.cli.metadata import VERSION

    noted = distribution("numaproof").read_text("direct_url.json")
    if noted is None:
        return f"numaproof=={VERSION}"
    origin = json.loads(noted)
    if repository := origin.get("vcs_info"):
        return f"numaproof @ {repository['vcs']}+{origin['url']}@{repository['commit_id']}"
    return f"numaproof @ {origin['url']}"


@click.command()
@click.argument("folder", metavar="DIR", type=OUTPUT_FOLDER)
@click.option(
    "--language",
    type=Choice(tuple(SKELETONS)),
    required=True,
    help="Language of the adapter.",
)
@click.option("--name", help="Name of the adapter in `hello` (default: the name of DIR).")
@click.option(
    "--source",
    metavar="REQUIREMENT",
    help="pip requirement from which the adapter's CI installs numaproof (default: the source of"
    " this installation).",
)
def init(folder: Path, language: str, name: str | None, source: str | None) -> None:
    """Create an adapter with its tests, a tox.ini and a GitHub workflow.

    The adapter supports the none and static CPU Manager policies at level invariants. Fill in the
    function that chooses CPUs, then implement and claim more. Existing files are never overwritten.

    \b
    Examples:
      numaproof init my-driver --language go
      numaproof init my-driver --language rust --source git+https://example.com/numaproof@v1
    """
    called = Path(os.path.realpath(folder)).name if name is None else name
    if not _NAME.fullmatch(called):
        hint = "expected letters, digits, dots, dashes and underscores"
        where, fix = ("DIR", "; set one with --name") if name is None else ("--name", "")
        raise click.BadParameter(f"'{called}' is not a valid name ({hint}){fix}", param_hint=where)
    origin = _install_source() if source is None else source.strip()
    if not origin or "\n" in origin:
        raise click.BadParameter(
            "not a pip requirement; expected one such as numaproof==0.2", param_hint="--source"
        )
    chosen = SKELETONS[language]
    written = _write(folder, _render(chosen, language, called, origin))
    _show(folder, called, chosen, written)
    if "@ file:" in origin:
        click.echo(
            f"\nOther machines can't install numaproof from {origin.partition('@ ')[2]}. Before you"
            f" push, put the URL of its repository into {SOURCE_FILE}."
        )


def _render(skeleton: Skeleton, language: str, name: str, source: str) -> dict[str, str]:
    """Renders the files of an adapter; returns their texts by path."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701 - source code, not HTML; names need no escaping
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    own = {path: f"{language}/{path}" for path in skeleton.files}
    values = {"name": name, "source": source, "kubernetes": NEWEST, "skeleton": skeleton}
    return {
        path: environment.from_string(_TEMPLATES.joinpath(template).read_text("utf-8")).render(
            values
        )
        for path, template in {**own, **_COMMON}.items()
    }


def _write(folder: Path, texts: dict[str, str]) -> list[Path]:
    """Writes all files or none.

    Raises:
        click.UsageError: a file already exists.
        OSError: a file cannot be written.
    """
    from numaproof.workdir.output_files import write_file

    paths = {folder / path: text for path, text in texts.items()}
    there = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if there:
        raise click.UsageError(
            f"{', '.join(there)}: already exists, so nothing was written; choose a new folder"
        )
    written = []
    try:
        for path, text in paths.items():
            write_file(path, text, new=True)
            written.append(path)
    except BaseException:
        for path in written:
            path.unlink()
        raise
    return written


def _show(folder: Path, name: str, skeleton: Skeleton, paths: list[Path]) -> None:
    click.echo(f"{name}, an adapter in {skeleton.title}:")
    for path in paths:
        click.echo(f"  {path}")
    first = skeleton.build or skeleton.tests
    click.echo("\nNext:")
    click.echo(f"  cd {quote_words([str(folder)])} && {first}")
    click.echo(f"  numaproof doctor {shlex.quote(skeleton.command)}")
    click.echo(f"  numaproof check --implementation {shlex.quote(skeleton.command)}")
    click.echo(f"Then fill in the function marked YOUR POLICY in {folder / skeleton.files[0]}.")
