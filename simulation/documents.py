"""Kubernetes documents: YAML or JSON, possibly several in a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from numaproof.inputs import documents
from numaproof.inputs.documents import Document, DocumentError
from numaproof.inputs.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.messages import KubeletConfiguration

_CONFIGURATION = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
}

MOST_DOCUMENTS = 10_000
"""Documents in a file; a node has a few hundred pods."""

_MARK = re.compile(r"^---(?=\s|$)", re.MULTILINE)
"""At the start of a line these characters always separate documents, even inside a scalar (YAML
1.2, section 9.1.2)."""


def parts(text: str, file: str) -> Iterator[Document]:
    """The non-empty documents in a file's text, with the line numbers of the file.

    Raises:
        DocumentError: one of them cannot be read, or there are too many.
    """
    before = values = 0
    for number, part in enumerate(_MARK.split(text)):
        if number > MOST_DOCUMENTS:
            message = f"more than {MOST_DOCUMENTS:,} documents"
            raise DocumentError(file, before + 1, "", message, "split the file")
        document = documents.load(part, file=file, aliases=True, before=before)
        before += part.count("\n")
        values += document.values
        if values > documents.MAX_VALUES:
            message = f"more than {documents.MAX_VALUES:,} values in one file"
            raise DocumentError(file, before, "", message, "split the file")
        if document.data is not None:
            yield document


def configuration(text: str, file: str) -> KubeletConfiguration:
    """The KubeletConfiguration in a file's text, without apiVersion and kind.

    Raises:
        DocumentError: the file does not hold exactly one document, or one of another kind.
    """
    return without_kind(configuration_document(text, file))


def without_kind(document: Document) -> KubeletConfiguration:
    """The content of a `configuration_document`, without apiVersion and kind."""
    return {key: value for key, value in document.data.items() if key not in _CONFIGURATION}


def configuration_document(text: str, file: str) -> Document:
    """The KubeletConfiguration in a file's text, with its line numbers.

    Raises:
        DocumentError: as for `configuration`.
    """
    found = list(parts(text, file))
    if len(found) != 1:
        message = f"expected one KubeletConfiguration, got {plural(len(found), 'document')}"
        raise DocumentError(file, 0, "", message)
    (document,) = found
    content = mapping(document, document.data, ())
    for key, wanted in _CONFIGURATION.items():
        if content.get(key) != wanted:
            message = f"expected {wanted}, got {content.get(key)!r}"
            raise document.error((key,), message, f"set {key}: {wanted}")
    return document


def mapping(document: Document, value: Any, path: documents.PathTuple) -> dict[str, Any]:
    """The value at `path`, which must be a mapping.

    Raises:
        DocumentError: it is not.
    """
    if not isinstance(value, dict):
        raise document.error(path, "must be a mapping", "see the Kubernetes API reference")
    return value
