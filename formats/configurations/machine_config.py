"""Files that a machine gets at its first boot: Ignition, alone or in a MachineConfig; cloud-init.

(Ignition documentation, "Configuration Specification v3.4.0"; Butane's specifications; OpenShift
documentation, "Machine configuration overview"; cloud-init documentation, "Write Files".)
"""

from __future__ import annotations

import re
from operator import itemgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from numaproof.formats.configurations import command_lines, plain, rancher
from numaproof.formats.configurations.configuration import (
    EFFECTIVE,
    Configuration,
    Format,
    items_at,
    name_of,
    no_configuration,
    with_drop_in,
    with_place,
)
from numaproof.formats.configurations.environment import has_flags, with_environment
from numaproof.formats.configurations.inner_files import (
    decode_base64,
    decode_url,
    inner_documents,
)
from numaproof.formats.configurations.openshift import GROUP
from numaproof.inputs.documents import Document, DocumentError, PathTuple, dotted_path, value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_MACHINE_CONFIG = "a MachineConfig"
_IGNITION = "an Ignition configuration"
_BUTANE = "a Butane configuration"
_CLOUD_INIT = "a cloud-init configuration"
_MAIN = re.compile(r"/kubelet(-config)?(\.conf|\.ya?ml|\.json)$|/kubelet/config(\.ya?ml|\.json)$")
_DROP_IN = re.compile(r"/[^/]*(kubelet|config)[^/]*(?<!\.service)\.d/[^/]*\.conf$")
_UNIT = re.compile(r"kubelet\.service(\.d/[^/]*\.conf)?$")
_ENVIRONMENT = re.compile(
    r"/etc/(default|sysconfig)/kubelet$|/kubelet[^/]*\.env$|kubeadm-flags\.env$"
)
_CONFIGURATION = re.compile(rf"kind[\"']?: *[\"']?{plain.KIND}\b")
_RANCHER = re.compile(r"/etc/rancher/(?:k3s|rke2)/config\.yaml(?:\.d/[^/]+\.ya?ml)?$")
_KINDS = (_MAIN, _DROP_IN, _UNIT, _ENVIRONMENT, _RANCHER)
_ELSEWHERE, _FILE, _DROP_INS, _WITH_FLAGS, _OF_RANCHER = -1, 0, 1, 2, 4
"""The kinds: a configuration at a place that only a flag names, one at its usual place, drop-ins,
the first whose files contain flags, and the one with flags in YAML."""


def _kind(path: str) -> int | None:
    """Returns the place of a file in the order in which the kubelet reads its configuration."""
    return next((n for n, kind in enumerate(_KINDS) if kind.search(path)), None)


_Layer = tuple[int, str, Configuration]
"""A part of the configuration, with its kind and the path of its file, by which it is ordered."""


class _Image:
    """The files and units below a path of a document, in a file with the given text."""

    adds_defaults = "OpenShift"
    files: tuple[str, ...] = ("storage", "files")

    def __init__(self, document: Document, text: str, product: str, at: PathTuple) -> None:
        self._document = document
        self._text = text
        self._product = product
        self._at = at

    def configuration(self) -> Configuration:
        """Returns what the files and units result in.

        Raises:
            DocumentError: none of them configures the kubelet, or one is damaged.
        """
        layers = sorted((*self._files(), *self._units()), key=itemgetter(0, 1))
        if not layers:
            raise self._nothing()
        resolved = with_environment([layer for _, _, layer in layers])
        layers = [(*one[:2], layer) for one, layer in zip(layers, resolved, strict=True)]
        left: tuple[str, ...] = ()
        if any(kind == _FILE for kind, _, _ in layers):
            left = tuple(path for kind, path, _ in layers if kind == _ELSEWHERE)
            layers = [one for one in layers if one[0] != _ELSEWHERE]
        (kind, _, found), *upper = layers
        for one, _, layer in upper:
            found = with_drop_in(found, layer) if one == _DROP_INS else layer.on(found)
        if left:
            found = found.note((), f"left out {', '.join(left)}")
        name = name_of(self._document)
        adds = found.adds_defaults or (self.adds_defaults if kind else "")
        return found._replace(name=name, adds_defaults=adds)

    def _items(self, *path: str) -> list[tuple[PathTuple, Any]]:
        return items_at(self._document, (*self._at, *path))

    def _files(self) -> Iterator[_Layer]:
        for at, file in self._items(*self.files):
            path = str(value_at(file, ("path",)))
            kind = _ELSEWHERE if self._has_configuration(at) else _kind(path)
            if kind is None:
                continue
            content, place = self._content(at)
            if kind == _OF_RANCHER:
                for inner in inner_documents(self._document, place, content, self._text):
                    yield kind, path, rancher.read_file(inner)._replace(source=path)
            elif kind >= _WITH_FLAGS:
                yield kind, path, self._flags(place, PurePosixPath(path).name, content)
            else:
                yield from self._fields(place, path, content, kind)

    def _fields(self, place: PathTuple, path: str, content: str, kind: int) -> Iterator[_Layer]:
        documents = inner_documents(self._document, place, content, self._text)
        # kubeadm has a kubeconfig where OpenShift has the kubelet's configuration, and its own
        # configuration next to the kubelet's.
        others = [one for one in documents if one.data.get("kind") == "Config"]
        notes: tuple[str, ...] = ()
        if kind == _ELSEWHERE:
            others = [one for one in documents if one.data.get("kind") != plain.KIND]
            notes = tuple(
                with_place(one, (), f"left out an object of kind {one.data.get('kind')}")
                for one in others
            )
        for inner in documents:
            for found in plain.read(inner) if inner not in others else ():
                yield kind, path, found._replace(product=self._product, source=path, notes=notes)

    def _has_configuration(self, at: PathTuple) -> bool:
        """Whether a file at a place of the user's choice contains a KubeletConfiguration."""
        if _kind(str(value_at(self._document.data, (*at, "path")))) is not None:
            return False
        try:
            text, _ = self._content(at)
        except DocumentError:
            return False
        return command_lines.is_yaml(text) and _CONFIGURATION.search(text) is not None

    def _content(self, at: PathTuple) -> tuple[str, PathTuple]:
        """Returns a file's content and the path of its text: inline, or in a data URL."""
        where = (*at, "contents")
        inline, source = (*where, "inline"), (*where, "source")
        text = value_at(self._document.data, inline)
        if isinstance(text, str):
            return text, inline
        url = value_at(self._document.data, source)
        if not isinstance(url, str):
            raise self._document.error(where, "a file without contents", "add contents.source")
        compression = value_at(self._document.data, (*where, "compression"))
        return decode_url(self._document, source, url, str(compression or "")), source

    def _units(self) -> Iterator[_Layer]:
        for at, unit in self._items("systemd", "units"):
            if value_at(unit, ("name",)) != "kubelet.service":
                continue
            drop_ins = items_at(self._document, (*at, "dropins"))
            places = [(*one, "contents") for one in (at, *(path for path, _ in drop_ins))]
            for place in places:
                content = value_at(self._document.data, place)
                if isinstance(content, str):
                    found = self._flags(place, "kubelet.service", content)
                    if found.command or any(map(has_flags, found.variables.values())):
                        yield _WITH_FLAGS, dotted_path(place), found

    def _flags(self, place: PathTuple, source: str, content: str) -> Configuration:
        found = command_lines.inside(self._document, place, content, self._text)
        return found._replace(product=self._product, source=source)

    def _nothing(self) -> DocumentError:
        paths = [str(value_at(one, ("path",))) for _, one in self._items(*self.files)]
        shown = ", ".join(paths[:MAX_SHOWN]) or "no files"
        fix = f"expected a file such as /etc/kubernetes/kubelet.conf, got {shown}"
        if len(paths) > MAX_SHOWN:
            fix += f" and {len(paths) - MAX_SHOWN} more"
        owner = value_at(self._document.data, ("metadata", "ownerReferences", 0, "kind"))
        if owner:
            fix += f"; the {owner} that owns it may have one"
        message = f"{self._product} without a kubelet configuration"
        fix += f"; or use the output of `{EFFECTIVE}`"
        return no_configuration(self._document, (), message, fix)


class _CloudInit(_Image):
    """The files of cloud-init, which has no units."""

    adds_defaults = "the image"
    files = ("write_files",)

    def _units(self) -> Iterator[_Layer]:
        yield from ()

    def _content(self, at: PathTuple) -> tuple[str, PathTuple]:
        """Returns a file's content, and the path of its text."""
        place = (*at, "content")
        text = str(value_at(self._document.data, place) or "")
        encoding = str(value_at(self._document.data, (*at, "encoding")) or "")
        if not encoding.startswith(("b64", "base64", "gz")):
            return text, place
        return decode_base64(self._document, place, text), place


MAX_SHOWN = 3
"""Maximum number of a machine's files to list in a message."""


def _reader(
    product: str, at: PathTuple = (), image: type[_Image] = _Image
) -> Callable[[Document, str], Iterator[Configuration]]:
    def read(document: Document, text: str) -> Iterator[Configuration]:
        yield image(document, text, product, at).configuration()

    return read


FORMATS = (
    Format(
        _MACHINE_CONFIG,
        _reader(_MACHINE_CONFIG, ("spec", "config")),
        (("spec", "config", "ignition"),),
        GROUP,
        ("MachineConfig",),
    ),
    Format(_IGNITION, _reader(_IGNITION), (("ignition", "version"),)),
    Format(_BUTANE, _reader(_BUTANE), (("variant",),)),
    Format(
        _CLOUD_INIT,
        _reader(_CLOUD_INIT, image=_CloudInit),
        (("write_files",), ("runcmd",), ("bootcmd",)),
    ),
)
