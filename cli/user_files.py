"""Input files of commands, including standard input."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numaproof.formats.machines.description import MachineText
    from numaproof.inputs.documents import Document, DocumentError
    from numaproof.simulation import pods
    from numaproof.simulation.documents import ConfigurationFile

STDIN = "<stdin>"


@dataclass(frozen=True)
class UserFile:
    """A file that the user named, or standard input, read on demand."""

    name: str

    def read(self, most: int) -> bytes:
        """Reads the file's bytes.

        Raises:
            DocumentError: the file is not a regular file, or is larger than `most`.
        """
        from numaproof.inputs import door

        if self.name == STDIN:
            return door.read_bounded(sys.stdin.buffer, STDIN, most=most)
        return door.read(self.name, most=most)

    def text(self) -> str:
        """Reads the file's text, which may contain several documents.

        Raises:
            DocumentError: as for `read`, or the text is not UTF-8.
        """
        from numaproof.inputs import door

        return door.text(self.read(door.DOCUMENT_BYTES), self.name)


class UserFileParam(click.ParamType[UserFile]):
    """A file name; ``-`` is standard input."""

    name = "filename"

    def convert(
        self, value: str | UserFile, param: click.Parameter | None, ctx: click.Context | None
    ) -> UserFile:
        """Returns the file, which must exist."""
        if isinstance(value, UserFile):
            return value
        if value == "-":
            return UserFile(STDIN)
        if not Path(value).exists():
            self.fail(f"file '{value}' does not exist; check the path", param, ctx)
        return UserFile(value)


USER_FILE = UserFileParam()


lenient_option = click.option(
    "--lenient",
    is_flag=True,
    help="Warn about unknown fields instead of rejecting them.",
)


def read_configuration(
    file: UserFile, releases: Sequence[str], *, lenient: bool
) -> ConfigurationFile:
    """Reads a KubeletConfiguration and prints its notes to standard error.

    With `lenient`, unknown fields are ignored with a note.

    Raises:
        DocumentError: the file is not a KubeletConfiguration, a value has the wrong type, or a
            field is unknown.
        DocumentErrors: several fields are invalid.
    """
    from numaproof.simulation import documents

    found = documents.configuration(file.text(), file.name, releases)
    documents.refuse(found.type_errors if lenient else (*found.unknown, *found.type_errors))
    found = found._replace(notes=(*found.notes, *documents.ignored_field_warnings(found.unknown)))
    for note in found.notes:
        click.echo(note, err=True)
    return found


def read_node(
    config: UserFile | None,
    files: Sequence[UserFile],
    releases: Sequence[str],
    *,
    lenient: bool,
    replicas: int | None = None,
    running: bool = False,
) -> tuple[ConfigurationFile | None, pods.Reading]:
    """Reads a configuration and pods for kubelets of these releases.

    For the other arguments, see `numaproof.simulation.pods.read`.

    Raises:
        click.UsageError: standard input is named twice.
        DocumentError: a file is invalid.
        DocumentErrors: the files have several errors.
    """
    from numaproof.simulation import documents, pods

    check_read_once((config, *files))
    texts = ((file.name, file.text()) for file in files)
    errors: list[DocumentError] = []
    settings = None
    with documents.collect_errors(errors):
        found = pods.read(texts, replicas, running=running, releases=releases, lenient=lenient)
    with documents.collect_errors(errors):
        settings = read_configuration(config, releases, lenient=lenient) if config else None
    documents.refuse(errors)
    return settings, found


def machine_for(config: Mapping[str, Any], machine: MachineText) -> MachineText:
    """Checks that a machine's description is enough for a configuration, and prints its gaps.

    Raises:
        DocumentError: the configuration depends on something that the description doesn't say.
    """
    from numaproof.formats.machines.needs import require_enough

    require_enough(machine, config)
    for line in machine.lines:
        click.echo(line, err=True)
    return machine


def require_pods(reading: pods.Reading, files: Sequence[UserFile]) -> None:
    """Checks that the files contain pods.

    Raises:
        click.UsageError: the files contain no pods.
    """
    if not files:
        raise click.UsageError("no manifests of pods; name a file, or - for standard input")
    if not reading.pods:
        named = ", ".join(file.name for file in files)
        raise click.UsageError(f"{named}: no pods; expected manifests of Pods or workloads")


@contextmanager
def locate_unsupported(document: Document | None) -> Iterator[None]:
    """Adds the configuration's file and line to a `CannotAnswerError` raised in the block.

    Raises:
        DocumentError: the configuration uses something that is not supported.
        CannotAnswerError: the same, but there is no configuration file.
    """
    from numaproof.simulation.admission import CannotAnswerError

    try:
        yield
    except CannotAnswerError as error:
        if document is None:
            raise
        raise document.error(error.path, str(error)) from None


def check_read_once(files: Iterable[UserFile | None]) -> None:
    """Checks that at most one of the files is standard input.

    Raises:
        click.UsageError: several of them are.
    """
    if sum(file is not None and file.name == STDIN for file in files) > 1:
        raise click.UsageError("standard input can be read only once; use - for a single file")
