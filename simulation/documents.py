"""Reads Kubernetes documents: YAML or JSON, possibly several in a file."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from numaproof.formats.configurations import EFFECTIVE
from numaproof.inputs.documents import Document, DocumentError, PathTuple
from numaproof.inputs.errors import DocumentErrors, shorten
from numaproof.inputs.plurals import plural
from numaproof.inputs.streams import MAX_PROBLEMS
from numaproof.reference.config import fields as configuration_fields
from numaproof.reference.config.configuration import load
from numaproof.simulation import fields, flag_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.formats.configurations import Configuration
    from numaproof.protocol.messages import KubeletConfiguration

_HEAD = ("apiVersion", "kind")


class ConfigurationFile(NamedTuple):
    """A KubeletConfiguration read from a file.

    Attributes:
        document: its fields, with the line numbers of the file.
        settings: its fields, except for apiVersion and kind. Flags override those of the file.
        flags: the kubelet's flags, in the form ``--name=value``.
        unknown: errors about fields that the kubelets of these releases do not have.
        type_errors: errors about values of the wrong type, for fields that the resource managers
            do not read.
        notes: remarks about how the file was read.
        adds_defaults: the product that may add settings which are not in the file; empty if none
            does.
    """

    document: Document
    settings: KubeletConfiguration
    flags: tuple[str, ...]
    unknown: tuple[DocumentError, ...]
    type_errors: tuple[DocumentError, ...]
    notes: tuple[str, ...]
    adds_defaults: str


def configuration(read: Configuration, releases: Sequence[str]) -> ConfigurationFile:
    """Checks a configuration for kubelets of some releases, and sets the fields of its flags.

    Raises:
        DocumentError: none of its fields exist in the releases.
        DocumentErrors: the same, for several fields.
    """
    document = read.document
    fields_alone = [name for name in document.data if name not in _HEAD]
    inside, mistyped = field_errors(document, document.data, fields.CONFIGURATION, releases, ())
    unknown = (*read.errors, *inside)
    known = fields.of(fields.CONFIGURATION, releases)
    if not read.flags and fields_alone and known.isdisjoint(fields_alone):
        raise _several(unknown)
    whole = flag_fields.with_flags(document, read.flags, releases[0])
    settings = {key: value for key, value in whole.data.items() if key not in _HEAD}
    return ConfigurationFile(
        whole,
        settings,
        tuple(map(str, read.flags)),
        unknown,
        mistyped,
        tuple(_notes(read, document, settings)),
        read.adds_defaults,
    )


def _notes(
    read: Configuration, document: Document, settings: KubeletConfiguration
) -> Iterator[str]:
    """Yields what was read, where, and what was not."""
    file, line = document.locate()
    where = f"{file}:{line}"
    fields_alone = document.data.keys() - {*_HEAD}
    if not fields_alone and not read.flags:
        yield f"{where}: no field is set; assuming the kubelet's defaults"
    else:
        counts = [
            plural(len(some), name)
            for name, some in (("setting", fields_alone), ("flag", read.flags))
            if some
        ]
        source = " of ".join(filter(None, (read.source, read.product)))
        changed = ", ".join(_changes(settings)) or "none of the resource managers' settings"
        what = " from ".join(filter(None, (" and ".join(counts), source)))
        yield f"{where}: read {what}: {changed}"
    for flag in read.flags:
        if flag.name in _FILES and not fields_alone:
            yield f"{where}: the kubelet also reads {flag.value}: name it also, before this file"
    yield from _overridden(read, document, settings)
    yield from read.notes
    if read.adds_defaults:
        yield (
            f"{where}: {read.adds_defaults} may add settings that are not in this file; for the"
            f" effective configuration, use the output of `{EFFECTIVE}`"
        )


def _overridden(
    read: Configuration, document: Document, settings: KubeletConfiguration
) -> Iterator[str]:
    """Yields a note for each field of the managers that a flag overrides with another value."""
    for name, before in document.data.items():
        flag = next((one for one in read.flags[::-1] if flag_fields.field(one.name) == name), None)
        if name in configuration_fields.DECODED and flag and _is_lost(before, settings.get(name)):
            places = (one.locate() for one in (flag.place, document.below((name,))))
            place, other = (f"{file}:{line}" for file, line in places)
            yield f"{place}: {flag} overrides {name} {shorten(compact(before))} of {other}"


def _is_lost(before: Any, after: Any) -> bool:
    """Whether a value, or an entry of a map, is not in the value that replaces it."""
    if isinstance(before, dict) and isinstance(after, dict):
        return any(_is_lost(value, after.get(name)) for name, value in before.items())
    return compact(before) != compact(after)


_FILES = ("config", "config-dir")
"""Flags that name configuration files."""


def _changes(settings: KubeletConfiguration) -> Iterator[str]:
    """Yields the resource managers' settings that differ from the kubelet's defaults."""
    defaults = configuration_defaults()
    for name, value in settings.items():
        if name in configuration_fields.DECODED and value not in (None, defaults.get(name)):
            yield f"{name} {shorten(compact(value))}"


def compact(value: Any) -> str:
    """Returns a value in YAML's flow style, without quotes."""
    match value:
        case dict():
            return f"{{{', '.join(f'{name}: {compact(one)}' for name, one in value.items())}}}"
        case list():
            return f"[{', '.join(map(compact, value))}]"
        case bool():
            return str(value).lower()
        case None:
            return "null"
    return str(value)


@cache
def configuration_defaults() -> Mapping[str, Any]:
    """Returns the kubelet's defaults of the fields that the resource managers read."""
    return load({}, lambda _: {}).in_force()


@contextmanager
def collect_errors(errors: list[DocumentError]) -> Iterator[None]:
    """Collects errors about documents in `errors` instead of raising them."""
    try:
        yield
    except DocumentError as error:
        errors.append(error)
    except DocumentErrors as several:
        errors += several.errors


def refuse(errors: Sequence[DocumentError]) -> None:
    """Raises the errors, if there are any.

    Raises:
        DocumentError: there is a single error.
        DocumentErrors: there are several.
    """
    if errors:
        raise _several(errors)


def _several(errors: Sequence[DocumentError]) -> DocumentError | DocumentErrors:
    return errors[0] if len(errors) == 1 else DocumentErrors(errors)


def ignored_field_warnings(unknown: Sequence[DocumentError]) -> Iterator[str]:
    """Yields warnings that unknown fields were ignored."""
    return (f"warning: ignored: {one}" for one in unknown)


def field_errors(
    document: Document, value: Any, type_: str, releases: Sequence[str], path: PathTuple
) -> tuple[tuple[DocumentError, ...], tuple[DocumentError, ...]]:
    """Returns errors about unknown fields, and errors about values of the wrong type.

    The arguments are as for `fields.problems`. Only the first `MAX_PROBLEMS` problems count.
    Configuration fields that the resource managers read are left out, because the kubelet has its
    own messages for them.
    """
    unknown, mistyped = [], []
    for one in islice(fields.problems(value, type_, releases, path), MAX_PROBLEMS):
        error = document.error(one.path, one.message, one.fix)
        if one.unknown:
            unknown.append(error)
        elif type_ != fields.CONFIGURATION or one.path[0] not in configuration_fields.DECODED:
            mistyped.append(error)
    return tuple(unknown), tuple(mistyped)


def mapping(document: Document, value: Any, path: PathTuple) -> dict[str, Any]:
    """Returns the value at `path`, which must be a mapping.

    Raises:
        DocumentError: the value is not a mapping.
    """
    if not isinstance(value, dict):
        raise document.error(path, "must be a mapping", "see the Kubernetes API reference")
    return value
