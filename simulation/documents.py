"""Reads Kubernetes documents: YAML or JSON, possibly several in a file."""

from __future__ import annotations

import re
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from numaproof.inputs import documents
from numaproof.inputs.documents import Document, DocumentError, PathTuple
from numaproof.inputs.errors import DocumentErrors
from numaproof.inputs.plurals import plural
from numaproof.reference.config import fields as configuration_fields
from numaproof.simulation import fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numaproof.protocol.messages import KubeletConfiguration


API_VERSION = "kubelet.config.k8s.io/v1beta1"

_OPENSHIFT_GROUP = "machineconfiguration.openshift.io/"
_OPENSHIFT = "an OpenShift KubeletConfig"
_IN_OPENSHIFT = ("spec", "kubeletConfig")
_OPENSHIFT_FIELDS: Mapping[PathTuple, tuple[str, ...]] = {
    (): ("apiVersion", "kind", "metadata", "spec", "status"),
    ("metadata",): tuple(fields.table()["ObjectMeta"]),
    ("spec",): (
        "autoSizingReserved",
        "kubeletConfig",
        "logLevel",
        "machineConfigPoolSelector",
        "tlsSecurityProfile",
    ),
}

_IN_CONFIGZ = ("kubeletconfig",)

FROM_NODE = "kubectl get --raw /api/v1/nodes/NODE/proxy/configz"
"""The command that prints a node's effective configuration, which can also be read."""


_K3S = (
    "a k3s or RKE2 configuration with kubelet flags",
    "write the flags as a KubeletConfiguration",
)
_GKE = ("a GKE node system configuration", "write its fields as a KubeletConfiguration")
_OTHERS = {"kubelet-arg": _K3S, "kubelet-arg+": _K3S, "kubeletConfig": _GKE, "linuxConfig": _GKE}
"""Fields that identify other products' files, with a description and a fix."""


def unwrap(document: Document) -> tuple[Document, str, tuple[DocumentError, ...]]:
    """Finds the KubeletConfiguration in a document.

    Returns:
        The document of its fields, a note on their location (empty if they are the whole
        document), and errors about unknown fields around them.

    Raises:
        DocumentError: the document is something else; the message says what, and suggests a fix.
    """
    content = document.data
    _refuse_others(document)
    version, kind = content.get("apiVersion"), content.get("kind")
    if str(version).startswith(_OPENSHIFT_GROUP) and kind == "KubeletConfig":
        return _openshift(document)
    if content.keys() == {*_IN_CONFIGZ} and isinstance(content[_IN_CONFIGZ[0]], dict):
        note = (
            f"{document.file}:{document.line(_IN_CONFIGZ)}: read kubeletconfig from configz output"
        )
        return document.below(_IN_CONFIGZ), note, ()
    if kind is None or version is None:
        known = {"kind", "apiVersion", *fields.table()[fields.CONFIGURATION]} & content.keys()
        misspelt = [
            (name, wanted)
            for name in content
            for wanted in ("apiVersion", "kind")
            if wanted not in content and fields.is_slip(name, wanted)
        ]
        if misspelt:
            (name, wanted), *_ = misspelt
            raise document.error((name,), "unknown field", f"did you mean {wanted}?")
        if not known:
            message = "not a KubeletConfiguration: it has none of its fields"
            raise document.error((), message, _fix())
    if kind not in (None, fields.CONFIGURATION):
        raise document.error(("kind",), f"expected {fields.CONFIGURATION}, got {kind!r}", _fix())
    for key, wanted in (("apiVersion", API_VERSION), ("kind", fields.CONFIGURATION)):
        if content.get(key) != wanted:
            message = f"expected {wanted}, got {content.get(key)!r}"
            raise document.error((key,), message, f"set {key}: {wanted}")
    return document, "", ()


def _fix() -> str:
    return f"use the file that the kubelet reads with --config, or the output of `{FROM_NODE}`"


def _openshift(document: Document) -> tuple[Document, str, tuple[DocumentError, ...]]:
    misspelt = tuple(
        document.error((*path, name), "unknown field", fields.suggestion(name, known))
        for path, known in _OPENSHIFT_FIELDS.items()
        for name in _names(value_at(document.data, path))
        if name not in known
    )
    if not isinstance(value_at(document.data, _IN_OPENSHIFT), dict):
        if misspelt:
            raise misspelt[0]
        message = f"{_OPENSHIFT} without a configuration"
        raise document.error(_IN_OPENSHIFT, message, "add spec.kubeletConfig")
    note = (
        f"{document.file}:{document.line(_IN_OPENSHIFT)}: read spec.kubeletConfig of {_OPENSHIFT},"
        " without the defaults that OpenShift adds"
    )
    return document.below(_IN_OPENSHIFT), note, misspelt


def _refuse_others(document: Document) -> None:
    """Raises an error for files of other products, whatever their apiVersion and kind."""
    content = document.data
    if content.get("kind") == fields.CONFIGURATION and value_at(content, _IN_OPENSHIFT) is not None:
        message = f"{_OPENSHIFT} with another kind: the kubelet does not read spec.kubeletConfig"
        fix = f"set apiVersion: {_OPENSHIFT_GROUP}v1 and kind: KubeletConfig again"
        raise document.error(("spec",), message, fix)
    is_openshift = str(content.get("apiVersion")).startswith(_OPENSHIFT_GROUP)
    for name, (what, fix) in _OTHERS.items():
        if name in content and not is_openshift:
            raise document.error((name,), what, f"{fix}, or use the output of `{FROM_NODE}`")
    if value_at(content, ("machine", "kubelet")) is not None:
        fix = "use the file that Talos generates: talosctl read /etc/kubernetes/kubelet.yaml"
        raise document.error(("machine",), "a Talos machine configuration", fix)


def _names(value: Any) -> Iterable[str]:
    return value if isinstance(value, dict) else ()


def value_at(value: Any, path: PathTuple) -> Any:
    """Returns the value at a path through mappings; None if there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


_HEAD = ("apiVersion", "kind")

MAX_DOCUMENTS = 10_000
"""Maximum number of documents in a file; a node has a few hundred pods."""

MAX_PROBLEMS = 100
"""Maximum number of problems to report in a document and overall, because suggestions are slow."""

_MARK = re.compile(r"^---(?=\s|$)", re.MULTILINE)
"""Separates documents wherever it starts a line, even inside a scalar (YAML 1.2, section 9.1.2)."""


def split_documents(
    text: str, file: str, errors: list[DocumentError] | None = None
) -> Iterator[Document]:
    """Yields the non-empty documents in a file's text, with the line numbers of the file.

    Args:
        text: the text.
        file: the file's name.
        errors: collects errors, so that reading continues after an unreadable document.

    Raises:
        DocumentError: a document cannot be read and `errors` is None, or there are too many.
    """
    before = values = 0
    for number, part in enumerate(_MARK.split(text)):
        if number > MAX_DOCUMENTS:
            message = f"more than {MAX_DOCUMENTS:,} documents"
            raise DocumentError(file, before + 1, "", message, "split the file")
        first, before = before, before + part.count("\n")
        try:
            document = documents.load(part, file=file, aliases=True, before=first)
        except DocumentError as error:
            if errors is None:
                raise
            errors.append(error)
            if len(errors) >= MAX_PROBLEMS:
                return
            continue
        values += document.values
        if values > documents.MAX_VALUES:
            message = f"more than {documents.MAX_VALUES:,} values in one file"
            raise DocumentError(file, before, "", message, "split the file")
        if document.data is not None:
            yield document


class ConfigurationFile(NamedTuple):
    """A KubeletConfiguration read from a file.

    Attributes:
        document: its fields, with the line numbers of the file.
        settings: its fields, except for apiVersion and kind.
        unknown: errors about fields that the kubelets of these releases do not have.
        type_errors: errors about values of the wrong type, for fields that the resource managers
            do not read.
        notes: remarks about how the file was read.
    """

    document: Document
    settings: KubeletConfiguration
    unknown: tuple[DocumentError, ...]
    type_errors: tuple[DocumentError, ...]
    notes: tuple[str, ...]


def configuration(text: str, file: str, releases: Sequence[str]) -> ConfigurationFile:
    """Reads the KubeletConfiguration in a file's text.

    Args:
        text: the text.
        file: the file's name.
        releases: the releases whose kubelets read it.

    Raises:
        DocumentError: the file does not contain exactly one document, or the document is of another
            kind, or none of its fields exist in the releases.
    """
    found = list(split_documents(text, file))
    if len(found) != 1:
        message = f"expected one KubeletConfiguration, got {plural(len(found), 'document')}"
        raise DocumentError(file, 0, "", message)
    (whole,) = found
    mapping(whole, whole.data, ())
    document, note, around = unwrap(whole)
    settings = {key: value for key, value in document.data.items() if key not in _HEAD}
    inside, mistyped = field_errors(document, document.data, fields.CONFIGURATION, releases, ())
    unknown = (*around, *inside)
    if settings and settings.keys().isdisjoint(fields.of(fields.CONFIGURATION, releases)):
        raise _several(unknown)
    notes = [note] if note else []
    if not settings:
        where = f"{file}:{document.line()}"
        notes.append(f"{where}: no field is set; assuming the kubelet's defaults")
    return ConfigurationFile(document, settings, unknown, mistyped, tuple(notes))


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
    document: Document, value: Any, type_: str, releases: Sequence[str], path: documents.PathTuple
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


def mapping(document: Document, value: Any, path: documents.PathTuple) -> dict[str, Any]:
    """Returns the value at `path`, which must be a mapping.

    Raises:
        DocumentError: the value is not a mapping.
    """
    if not isinstance(value, dict):
        raise document.error(path, "must be a mapping", "see the Kubernetes API reference")
    return value
