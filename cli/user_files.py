"""Files that a command reads, of which standard input can be one."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numaproof.inputs.documents import Document, DocumentError
    from numaproof.simulation import pods
    from numaproof.simulation.documents import ConfigurationFile

STDIN = "<stdin>"


@dataclass(frozen=True)
class UserFile:
    """A file that the user named, or standard input; read when it is needed."""

    name: str

    def read(self, most: int) -> bytes:
        """Its bytes.

        Raises:
            DocumentError: it is no regular file, or is larger than `most`.
        """
        from numaproof.inputs import door

        if self.name == STDIN:
            return door.read_bounded(sys.stdin.buffer, STDIN, most=most)
        return door.read(self.name, most=most)

    def text(self) -> str:
        """Its text, of one or more documents.

        Raises:
            DocumentError: as `read`, or it is not UTF-8.
        """
        from numaproof.inputs import door

        return door.text(self.read(door.DOCUMENT_BYTES), self.name)


class UserFileParam(click.ParamType[UserFile]):
    """The name of a file; ``-`` is standard input."""

    name = "filename"

    def convert(
        self, value: str | UserFile, param: click.Parameter | None, ctx: click.Context | None
    ) -> UserFile:
        """The file of that name, which must exist."""
        if isinstance(value, UserFile):
            return value
        if value == "-":
            return UserFile(STDIN)
        if not Path(value).exists():
            self.fail(f"'{value}': No such file or directory", param, ctx)
        return UserFile(value)


USER_FILE = UserFileParam()


lenient_option = click.option(
    "--lenient", is_flag=True, help="Ignore unknown fields with a warning (default: an error)."
)


def read_configuration(
    file: UserFile, releases: Sequence[str], *, lenient: bool
) -> ConfigurationFile:
    """The KubeletConfiguration in a file; its notes say which fields were ignored, too.

    They go to standard error.

    Raises:
        DocumentError: the file does not have one, or has a value of the wrong type or, unless
            `lenient`, an unknown field.
        DocumentErrors: it has several such fields.
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
    """The configuration in a file and the pods in others, for kubelets of these releases.

    The other arguments are as for `numaproof.simulation.pods.read`.

    Raises:
        click.UsageError: standard input is named twice.
        DocumentError: something is wrong with one of them.
        DocumentErrors: several things are, in the pods, the configuration or both.
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


def require_pods(reading: pods.Reading, files: Sequence[UserFile]) -> None:
    """Checks that there are pods in files.

    Raises:
        click.UsageError: there are none.
    """
    if not reading.pods:
        named = ", ".join(file.name for file in files)
        raise click.UsageError(f"no pods in {named or 'no files'}; name manifests of Pods")


@contextmanager
def locate_unsupported(document: Document | None) -> Iterator[None]:
    """Names the configuration's file, and the line, in what cannot be answered about it.

    Raises:
        DocumentError: the configuration asks for what is not supported.
        CannotAnswerError: as it was raised in the block, without a configuration.
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
        click.UsageError: it is not so.
    """
    if sum(file is not None and file.name == STDIN for file in files) > 1:
        raise click.UsageError("standard input can be read once: only one file can be -")
