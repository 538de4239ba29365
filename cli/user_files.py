"""Input files of commands, including standard input."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from numaproof.cli.choice import IntRange, minor_release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numaproof.formats.machines.description import MachineText
    from numaproof.inputs.documents import Document, DocumentError
    from numaproof.simulation import pods
    from numaproof.simulation.documents import ConfigurationFile

STDIN = "<stdin>"

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True)
class UserFile:
    """A file that the user named, or standard input, read on demand.

    Attributes:
        name: its name.
        choice: the name of one of the configurations in the file.
        path: where it is, if its name is not a path because it is part of another file.
    """

    name: str
    choice: str = ""
    path: Path | None = None

    @property
    def place(self) -> Path:
        return self.path or Path(self.name)

    def read(self, most: int) -> bytes:
        """Reads the file's bytes.

        Raises:
            DocumentError: the file is not a regular file, or is larger than `most`.
        """
        from numaproof.inputs import door

        if self.name == STDIN:
            return door.read_bounded(sys.stdin.buffer, STDIN, most=most)
        return door.read(self.place, name=self.name, most=most)

    def text(self, most: int | None = None) -> str:
        """Reads the file's text, which may contain several documents and be gzip-compressed.

        `most` is the maximum size in bytes (default: that of files that people write).

        Raises:
            DocumentError: as for `read`, or the text is not UTF-8.
        """
        from numaproof.inputs import door

        most = door.DOCUMENT_BYTES if most is None else most
        content = self.read(most)
        if content.startswith(door.GZIP):
            content = door.unpack_gzip(content, self.name, most=most)
        return door.text(content, self.name)


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


class UserFolderParam(click.ParamType[UserFile]):
    """A directory."""

    name = "directory"

    def convert(
        self, value: str | UserFile, param: click.Parameter | None, ctx: click.Context | None
    ) -> UserFile:
        """Returns the directory, which must exist."""
        if isinstance(value, UserFile):
            return value
        if Path(value).exists() and not Path(value).is_dir():
            self.fail(f"'{value}' is a file; expected the directory that it is in", param, ctx)
        if not Path(value).is_dir():
            self.fail(f"directory '{value}' does not exist; check the path", param, ctx)
        return UserFile(value)


USER_FOLDER = UserFolderParam()


class ConfigurationParam(UserFileParam):
    """A file or directory with a kubelet's configuration; ``FILE#NAME`` chooses one of several."""

    name = "configuration"

    def convert(
        self, value: str | UserFile, param: click.Parameter | None, ctx: click.Context | None
    ) -> UserFile:
        """Returns the file, which must exist."""
        if isinstance(value, str) and "#" in value and not Path(value).exists():
            path, _, choice = value.rpartition("#")
            return replace(super().convert(path, param, ctx), choice=choice)
        return super().convert(value, param, ctx)


CONFIGURATION = ConfigurationParam()


def config_option(
    default: str = "the kubelet's defaults", *, is_required: bool = False
) -> Callable[[F], F]:
    """Returns the option for a kubelet's configuration; `default` describes the default."""
    ending = ". Required without --node." if is_required else f" (default: {default})."
    return click.option(
        "--config",
        "configs",
        type=CONFIGURATION,
        multiple=True,
        metavar="FILE",
        help="The node's kubelet configuration: a KubeletConfiguration, a file of another product"
        " that contains one, a directory of drop-ins, or the kubelet's flags. FILE#NAME chooses one"
        f" of several. Repeatable: later files override earlier ones{ending}",
    )


replicas_option = click.option(
    "--replicas",
    type=IntRange(min=0),
    help="Number of pods of each workload on this node (default: all replicas).",
)

node_name_option = click.option(
    "--node-name",
    default="",
    metavar="NAME",
    help="The node, if the pods are those of several nodes; leaves the others out.",
)

lenient_option = click.option(
    "--lenient",
    is_flag=True,
    help="Warn about unknown fields instead of rejecting them.",
)


def find_configuration(files: Sequence[UserFile], releases: Sequence[str]) -> ConfigurationFile:
    """Reads a kubelet's configuration from files, of which later ones override earlier ones.

    Raises:
        DocumentError: a file contains no configuration, or there are several to choose from.
        DocumentErrors: a file has several errors.
    """
    from numaproof.formats import configurations
    from numaproof.simulation import documents

    sources = [(file, _files(file)) for file in files]
    layers = [
        configurations.choose(configurations.read(one.text(), one.name), one.name, one.choice)
        for _, ones in sources
        for one in ones
    ]
    has_base = Path(f"{layers[0].document.file}.d").is_dir()
    are_drop_ins = Path(files[0].name).is_dir() and not has_base
    combination = configurations.combine(layers, are_drop_ins=are_drop_ins)
    left = tuple(note for file, ones in sources for note in _left_out(file, ones))
    combination = combination._replace(notes=(*left, *combination.notes))
    return documents.configuration(combination, releases)


_DROP_INS = (".conf", ".yaml", ".yml")


def _files(file: UserFile) -> list[UserFile]:
    """Returns the configuration files in a directory, or the file itself.

    A directory contains a file and its drop-ins (``config.yaml`` and ``config.yaml.d``), or only
    drop-ins.

    Raises:
        DocumentError: the directory has no configuration file.
    """
    from numaproof.inputs.documents import DocumentError

    folder = Path(file.name)
    if file.name == STDIN or not folder.is_dir():
        return [file]
    bases = [path.with_suffix("") for path in sorted(folder.glob("*.d"))]
    files = [
        *(path for path in bases if path.is_file()),
        *sorted(path for path in folder.glob("*.d/*") if path.suffix in _DROP_INS),
    ]
    files = files or sorted(folder.rglob("*.conf")) or sorted(folder.glob("*.y*ml"))
    if files:
        return [UserFile(str(path), file.choice) for path in files if path.is_file()]
    fix = "expected *.conf of the kubelet's --config-dir, or *.yaml"
    raise DocumentError(file.name, 0, "", "no configuration file in the directory", fix)


def _left_out(file: UserFile, read: Sequence[UserFile]) -> Iterator[str]:
    """Yields a note about the files in a directory that look like configurations but aren't read.

    In a directory with ``*.conf``, which are drop-ins, a kubelet reads no others.
    """
    folder = Path(file.name)
    if file.name == STDIN or not folder.is_dir():
        return
    names = {one.name for one in read}
    others = sorted(
        str(path.relative_to(folder))
        for path in (*folder.glob("*"), *folder.glob("*.d/*"))
        if path.suffix in (*_DROP_INS, ".json") and path.is_file() and str(path) not in names
    )
    if others:
        yield f"{file.name}: left out {', '.join(others)}"


def read_configuration(
    files: Sequence[UserFile], releases: Sequence[str], *, lenient: bool
) -> ConfigurationFile:
    """Reads a kubelet's configuration, and prints what was read to standard error.

    With `lenient`, unknown fields are ignored with a note.

    Raises:
        DocumentError: as for `find_configuration`, a value has the wrong type, or a field is
            unknown.
        DocumentErrors: several fields are invalid.
    """
    from numaproof.simulation import documents

    found = find_configuration(files, releases)
    documents.refuse(found.type_errors if lenient else (*found.unknown, *found.type_errors))
    found = found._replace(notes=(*found.notes, *documents.ignored_field_warnings(found.unknown)))
    for note in found.notes:
        click.echo(note, err=True)
    return found


def read_node(
    configs: Sequence[UserFile],
    files: Sequence[UserFile],
    releases: Sequence[str],
    *,
    lenient: bool,
    replicas: int | None = None,
    running: bool = False,
    node_name: str = "",
) -> tuple[ConfigurationFile | None, pods.Reading]:
    """Reads a configuration and pods for kubelets of these releases.

    In a directory, files that are not about Kubernetes are skipped. For the other arguments, see
    `numaproof.simulation.pods.PodOptions`.

    Raises:
        click.UsageError: standard input is named twice.
        DocumentError: a file is invalid.
        DocumentErrors: the files have several errors.
    """
    from numaproof.inputs.documents import LISTING
    from numaproof.simulation import documents, pods

    check_read_once((*configs, *files))
    options = pods.PodOptions(releases, replicas, running, node_name, lenient)
    errors: list[DocumentError] = []
    settings = None
    with documents.collect_errors(errors):
        listed = [_pod_files(file) for file in files]
        manifests = [one for inside, _ in listed for one in inside]
        optional = {one.name for one in manifests} - {file.name for file in files}
        found = pods.read(
            ((one.name, one.text(LISTING.size)) for one in manifests), options, optional
        )
        notes = (*(note for _, others in listed for note in others), *found.notes)
        found = pods.Reading(found.pods, notes, found.objects)
    with documents.collect_errors(errors):
        settings = read_configuration(configs, releases, lenient=lenient) if configs else None
    documents.refuse(errors)
    return settings, found


_MAX_FILES = 1000


_MANIFESTS = (".json", ".yaml", ".yml")
_MAX_NAMES = 3


def _pod_files(file: UserFile) -> tuple[list[UserFile], tuple[str, ...]]:
    """Returns the YAML and JSON files below a directory, or the file itself, and notes.

    Files and directories whose names start with a dot are left out.

    Raises:
        DocumentError: the directory has no such file, or too many.
    """
    from numaproof.inputs.documents import DocumentError
    from numaproof.inputs.plurals import plural

    folder = Path(file.name)
    if file.name == STDIN or not folder.is_dir():
        return [file], ()
    inside = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    shown = [path for path in inside if not any(part.startswith(".") for part in path.parts)]
    manifests = [path for path in shown if path.suffix in _MANIFESTS]
    others = [str(path) for path in shown if path.suffix not in _MANIFESTS]
    if len(manifests) > _MAX_FILES:
        message = f"more than {_MAX_FILES:,} files in the directory"
        raise DocumentError(file.name, 0, "", message, "name a smaller directory")
    if not manifests:
        fix = "expected *.yaml, *.yml or *.json"
        raise DocumentError(file.name, 0, "", "no manifests in the directory", fix)
    names = ", ".join(others[:_MAX_NAMES]) + (", ..." if others[_MAX_NAMES:] else "")
    note = f"{file.name}: skipped {plural(len(others), 'other file')}: {names}"
    return [UserFile(str(folder / path)) for path in manifests], (note,) if others else ()


def machine_for(
    config: Mapping[str, Any], machine: MachineText, *, release: str = "", state: bool = False
) -> MachineText:
    """Checks that a machine's description is enough for a configuration, and prints its gaps.

    With `state`, it must also be enough for the state of the CPU Manager. `release` is the one that
    the answer is for if the user chose none.

    Settings of the machine's kubelet that differ from the configuration are added to its notes.

    Raises:
        DocumentError: the configuration depends on something that the description doesn't say.
    """
    from msgspec.structs import replace

    from numaproof.formats.machines.needs import differing_settings, require_enough

    require_enough(machine, config, state=state)
    differing = (*differing_settings(machine, config), *differing_release(machine, release))
    machine = replace(machine, notes=(*machine.notes, *differing))
    for line in machine.lines:
        click.echo(line, err=True)
    return machine


def differing_release(machine: MachineText, release: str) -> Iterator[str]:
    """Yields a note if a machine's kubelet is of another release than the answer, if it has one."""
    from numaproof.protocol.releases import RELEASES

    own = minor_release(machine.kubelet)
    if own and release and own != release:
        fix = f" (--kubernetes {own})" if own in RELEASES else ""
        yield f"its kubelet is {machine.kubelet}, but this answer is for {release}{fix}"


def require_pods(reading: pods.Reading, files: Sequence[UserFile]) -> None:
    """Checks that the files contain pods.

    Raises:
        click.UsageError: there are no files, or they contain no pods, and notes say why.
        DocumentError: the files contain no objects.
    """
    from numaproof.inputs.documents import DocumentError

    if not files:
        raise click.UsageError("no manifests of pods; name a file, or - for standard input")
    if not reading.pods:
        named = ", ".join(file.name for file in files)
        if not reading.notes:
            fix = "expected manifests of Pods or workloads"
            raise DocumentError(named, 1, "", "no pods to admit", fix)
        raise click.UsageError(f"{named}: no pods to admit; see above")


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


def check_read_once(files: Iterable[UserFile]) -> None:
    """Checks that at most one of the files is standard input.

    Raises:
        click.UsageError: several of them are.
    """
    if sum(file.name == STDIN for file in files) > 1:
        raise click.UsageError("standard input can be read only once; use - for a single file")
