"""`numaproof init`: a new adapter, green from its first run."""

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
"""What every adapter gets: its path, and its template."""


@dataclass(frozen=True)
class Skeleton:
    """An adapter in one language.

    Attributes:
        title: the language, as people write it.
        files: its own files; the first is the one to fill in.
        command: what runs the adapter.
        tests: what runs the adapter's own tests.
        build: what builds it, if anything.
        ignore_patterns: what building and testing leave behind, as patterns for git.
        program: the command of the language's tools that tox may run, from outside its environment.
        variables: the environment variables that it reads.
        action: the GitHub action that installs it, unless GitHub's runners have it.
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
    """What tells pip to install this numaproof elsewhere: its index, repository or folder.

    pip notes where it installed a package from unless that was an index (PEP 610).
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
    help="Language to write the adapter in.",
)
@click.option("--name", help="Name that the adapter answers to `hello` with (default: DIR's).")
@click.option(
    "--source",
    metavar="REQUIREMENT",
    help="Where the adapter's CI installs numaproof from, as pip understands it (default: where"
    " this numaproof was installed from).",
)
def init(folder: Path, language: str, name: str | None, source: str | None) -> None:
    """Create an adapter with its tests, a tox.ini and a GitHub workflow.

    It has the CPU Manager's policies none and static and claims level invariants. Fill in the one
    function that chooses CPUs, then claim more. Nothing is ever overwritten.

    \b
    Examples:
      numaproof init my-driver --language go
      numaproof init my-driver --language rust --source git+https://example.com/numaproof@v1
    """
    called = Path(os.path.realpath(folder)).name if name is None else name
    if not _NAME.fullmatch(called):
        hint = "letters, digits, dots, dashes and underscores"
        where, fix = ("DIR", "; choose another one with --name") if name is None else ("--name", "")
        raise click.BadParameter(f"'{called}' is not a name of {hint}{fix}", param_hint=where)
    origin = _install_source() if source is None else source.strip()
    if not origin or "\n" in origin:
        raise click.BadParameter("one line that pip understands", param_hint="--source")
    chosen = SKELETONS[language]
    written = _write(folder, _render(chosen, language, called, origin))
    _show(folder, called, chosen, written)
    if "@ file:" in origin:
        click.echo(
            f"\nOther machines cannot install {origin.partition('@ ')[2]}: name the address of"
            f" numaproof's repository in {SOURCE_FILE} before you push."
        )


def _render(skeleton: Skeleton, language: str, name: str, source: str) -> dict[str, str]:
    """The text of each file of an adapter, by its path."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701 - programs, not pages; a name needs no escaping
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
        click.ClickException: one of them is there already.
        OSError: one of them cannot be written.
    """
    from numaproof.workdir.output_files import write_file

    paths = {folder / path: text for path, text in texts.items()}
    there = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if there:
        raise click.UsageError(
            f"nothing written, because of {', '.join(there)}: choose a new folder"
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
