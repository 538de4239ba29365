"""ConfigMaps with a kubelet configuration in one of their keys.

kubeadm keeps the KubeletConfiguration of all nodes in ``kubelet-config``, and HyperShift expects
objects such as a KubeletConfig. (Kubernetes documentation, "Configuring each kubelet in your
cluster using kubeadm".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import (
    EFFECTIVE,
    Configuration,
    Format,
    NoConfigurationError,
    mapping_below,
    no_configuration,
)
from numaproof.formats.configurations.inner_files import inner_documents
from numaproof.inputs.documents import Document, DocumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_PRODUCT = "a ConfigMap"


def reader(
    read: Callable[[Document, str], Iterator[Configuration]],
) -> Callable[[Document, str], Iterator[Configuration]]:
    """Returns a reader of ConfigMaps; `read` reads the documents in their keys."""

    def read_map(document: Document, text: str) -> Iterator[Configuration]:
        entries = mapping_below(document, ("data",)).data
        found = []
        refusals: list[DocumentError] = []
        for key, content in entries.items():
            try:
                for inner in inner_documents(document, ("data", key), str(content), text):
                    found += [_with_key(one, key) for one in read(inner, text)]
            except DocumentError as error:
                if "Kubelet" in str(content) and not isinstance(error, NoConfigurationError):
                    raise
                refusals.append(error)
        if not found:
            if len(refusals) == 1:
                raise refusals[0]
            keys = ", ".join(entries) or "none"
            message = "a ConfigMap without a kubelet configuration"
            fix = f"its keys: {keys}; use the output of `{EFFECTIVE}`"
            raise no_configuration(document, ("data",), message, fix)
        yield from (one if len(found) > 1 else one._replace(name="") for one in found)

    return read_map


def _with_key(inner: Configuration, key: str) -> Configuration:
    product = f"{_PRODUCT} with {inner.product}" if inner.product else _PRODUCT
    source = f"data.{key}" + (f", {inner.source}" if inner.source else "")
    return inner._replace(product=product, source=source, name=inner.name or key)


def config_map_format(read: Callable[[Document, str], Iterator[Configuration]]) -> Format:
    """Returns the format of ConfigMaps; `read` reads the documents in their keys."""
    return Format(_PRODUCT, reader(read), (), "v1", ("ConfigMap",))
