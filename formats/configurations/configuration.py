"""A kubelet's configuration as found in a file, and the parts that formats have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from numaproof.inputs.documents import (
    Document,
    DocumentError,
    MergedDocument,
    apply_patch,
    dotted_path,
    parts,
    value_at,
)
from numaproof.inputs.names import is_slip, suggestion
from numaproof.reference.config import eviction
from numaproof.reference.config.fields import DECODED
from numaproof.reference.config.flags import SHORT, SWITCHES, field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numaproof.inputs.documents import PathTuple

EFFECTIVE = "kubectl get --raw /api/v1/nodes/NODE/proxy/configz"
"""The command that prints a node's effective configuration, which can also be read."""


PLAIN = "a KubeletConfiguration"
"""The product of a plain configuration, if it is combined with others."""


class Flag(NamedTuple):
    """A flag of the kubelet's command line.

    Attributes:
        name: its name, without dashes in front.
        value: its value.
        place: the value as a document, which knows its file and line.
    """

    name: str
    value: str
    place: Document

    def __str__(self) -> str:
        """Returns the flag as an argument: ``--name=value``."""
        return f"--{self.name}={self.value}"


Words = Sequence[tuple[str, Document]]
"""The words of a command line or a variable, each with its place."""


class Configuration(NamedTuple):
    """A kubelet's configuration as found in a file.

    Attributes:
        product: the format, such as ``an OpenShift KubeletConfig``; empty for a plain one.
        source: the part of the file that contains the configuration; empty for all of it.
        document: the fields of a KubeletConfiguration, with the lines of the file.
        flags: the flags that the kubelet gets in addition, in order.
        name: its name, if the file can have several.
        role: the kind of node that it is for, if the file has no names.
        notes: what was left out, and why.
        errors: unknown fields around the configuration.
        adds_defaults: the product that adds settings which are not in the file.
        replaces_flags: whether its flags replace those of earlier files of the product.
        command: the arguments of a unit's command, whose variables other files may set.
        variables: the variables that a unit or an environment file sets. They and the command
            become flags with `environment.with_environment`.
        environment_files: the paths of the environment files that a unit also reads.
    """

    product: str
    source: str
    document: Document
    flags: tuple[Flag, ...] = ()
    name: str = ""
    notes: tuple[str, ...] = ()
    errors: tuple[DocumentError, ...] = ()
    adds_defaults: str = ""
    replaces_flags: bool = False
    role: str = ""
    command: Words = ()
    variables: Mapping[str, Words] = {}
    environment_files: Words = ()

    def on(self, lower: Configuration) -> Configuration:
        """Returns this configuration on top of another one, as a JSON merge patch."""
        is_reset = self.replaces_flags and self.product in lower.product
        return self._replace(
            product=_both(lower.product or (PLAIN if lower.document.data else ""), self.product),
            source=self.source if is_reset else _both(lower.source, self.source),
            document=apply_patch(lower.document, self.document),
            flags=(*(() if is_reset else lower.flags), *self.flags),
            notes=(*lower.notes, *self.notes),
            errors=(*lower.errors, *self.errors),
            adds_defaults=self.adds_defaults or lower.adds_defaults,
            environment_files=(*lower.environment_files, *self.environment_files),
        )

    def note(self, path: PathTuple, text: str) -> Configuration:
        """Returns the configuration with a further note about the value at a path."""
        return self._replace(notes=(*self.notes, with_place(self.document, path, text)))


def _both(lower: str, upper: str) -> str:
    return lower if upper in lower else f"{lower} and {upper}" if lower else upper


def stack(layers: Sequence[Configuration]) -> Configuration:
    """Returns configurations for the same node on top of each other."""
    return reduce(lambda lower, upper: upper.on(lower), layers)


def with_drop_in(lower: Configuration, upper: Configuration) -> Configuration:
    """Returns a drop-in on top of a configuration, as with the kubelet's ``--config-dir``.

    The defaults are set before the merge, so a drop-in adds to the default eviction thresholds.
    (Kubernetes documentation, "Kubelet Configuration Directory Merging"; kubelet,
    ``mergeKubeletConfigurations``.)
    """
    thresholds = upper.document.data.get("evictionHard")
    if thresholds and not lower.document.data.get("evictionHard"):
        place = upper.document.below(("evictionHard",))
        defaults = {"evictionHard": scalar(place, dict(eviction.DEFAULTS))}
        known = apply_patch(MergedDocument(lower.document, defaults), lower.document)
        lower = lower._replace(document=known)
    return upper.on(lower)


class Format(NamedTuple):
    """A format of YAML and JSON documents.

    Attributes:
        product: a document of the format, such as ``an OpenShift KubeletConfig``.
        read: yields the configurations in a document; takes the text of the whole file also.
        marks: paths of values that only this format has.
        group: the API group; empty if documents have neither apiVersion nor kind.
        kinds: the kinds; all of the group's if there are none.
    """

    product: str
    read: Callable[[Document, str], Iterator[Configuration]]
    marks: tuple[PathTuple, ...] = ()
    group: str = ""
    kinds: tuple[str, ...] = ()

    def claims(self, content: Mapping[str, Any]) -> bool:
        """Whether a mapping has the format."""
        if not self.group:
            return content.get("kind") is None and self.mark(content) is not None
        version, kind = content.get("apiVersion"), content.get("kind")
        return str(version).partition("/")[0] == self.group and (
            not self.kinds or kind in self.kinds
        )

    def mark(self, content: Mapping[str, Any]) -> PathTuple | None:
        """Returns the first of the format's marks that a mapping has."""
        return next((path for path in self.marks if value_at(content, path) is not None), None)


class NoConfigurationError(DocumentError):
    """A document has no kubelet configuration, so it can be left out if there are others."""


def no_configuration(
    document: Document, path: PathTuple, message: str, fix: str
) -> NoConfigurationError:
    """Creates an error about the value at a path."""
    return NoConfigurationError(*document.locate(path), dotted_path(path), message, fix)


def with_place(document: Document, path: PathTuple, text: str) -> str:
    """Returns a text with the file and line of the value at a path in front."""
    file, line = document.locate(path)
    return f"{file}:{line}: {text}"


def mapping_below(document: Document, path: PathTuple) -> Document:
    """Returns the mapping at a path; an empty one if there is nothing.

    Raises:
        DocumentError: the value is something else.
    """
    value = value_at(document.data, path)
    if value is None:
        return MergedDocument(document, {})
    if not isinstance(value, dict):
        raise document.error(path, "must be a mapping", "see the documentation of the format")
    return document.below(path)


def items_at(document: Document, path: PathTuple) -> list[tuple[PathTuple, Any]]:
    """Returns the items of the list at a path, each with its own path; none if there is no list.

    Raises:
        DocumentError: the value is something else.
    """
    value = value_at(document.data, path)
    if not isinstance(value, list | None):
        raise document.error(path, "must be a list", "see the documentation of the format")
    return [((*path, number), one) for number, one in enumerate(value or ())]


def name_of(document: Document) -> str:
    """Returns the name of a Kubernetes object; empty if it has none."""
    return str(value_at(document.data, ("metadata", "name")) or "")


def find_path(document: Document, product: str, *paths: PathTuple) -> PathTuple:
    """Returns the first of several paths where a document has a value.

    Raises:
        DocumentError: there is none.
    """
    for path in paths:
        if value_at(document.data, path) is not None:
            return path
    raise nothing(document, product, *paths)


def cluster_api_flags(
    document: Document,
    below: PathTuple,
    read: Callable[[Document, PathTuple], Iterable[Flag]],
    *,
    adds_defaults: str,
) -> Configuration:
    """Returns the flags in a Cluster API object, or in a template of such objects.

    Args:
        document: the object.
        below: where the flags are below the ``spec`` of the object or of the template.
        read: reads the flags at a path.
        adds_defaults: the product that adds defaults.

    Raises:
        DocumentError: it has no flags, or they are invalid.
    """
    product = f"an {document.data.get('kind')}"
    paths = [(*at, *below) for at in (("spec", "template", "spec"), ("spec",))]
    path = find_path(document, product, *paths)
    return Configuration(
        product,
        dotted_path(path),
        MergedDocument(document, {}),
        tuple(read(document, path)),
        name_of(document),
        adds_defaults=adds_defaults,
    )


def nothing(document: Document, product: str, *paths: PathTuple) -> DocumentError:
    """Returns the error for a document without any of the settings that its format can have.

    If there is a name that resembles one of the paths' steps, the error suggests that step. If a
    setting of the managers is elsewhere, the error is about it.
    """
    for path in paths:
        parent: PathTuple = ()
        for step in path:
            there = value_at(document.data, parent)
            fix = f"did you mean {step}?"
            for name in there if isinstance(there, dict) and step not in there else ():
                if suggestion(name, [str(step)]) == fix:
                    return document.error((*parent, name), "unknown field", fix)
            parent = (*parent, step)
    places = " or ".join(map(dotted_path, paths))
    misplaced = next(_settings(document.data), None)
    if misplaced is not None:
        message = f"{product} with a setting of the kubelet in the wrong place"
        return document.error(misplaced, message, f"move it to {places}")
    message = f"{product} without a kubelet configuration"
    fix = f"expected {places}; or use the output of `{EFFECTIVE}`"
    return no_configuration(document, (), message, fix)


_OF_MANAGERS = re.compile("[mM]anager|^reserved")
"""Fields and flags that only kubelets have; feature gates and other fields are not among them."""


def _settings(value: Any) -> Iterator[PathTuple]:
    """Yields the paths of the managers' settings in a value."""
    entries: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, list):
        entries = enumerate(value)
    for name, inner in entries:
        if _OF_MANAGERS.search(str(name)) and (name in DECODED or field(str(name))):
            yield (name,)
        yield from ((name, *path) for path in _settings(inner))


def misspelt(document: Document, paths: Iterable[PathTuple]) -> Iterator[DocumentError]:
    """Yields an error for each name that is probably a misspelt step of one of the paths."""
    steps: dict[PathTuple, set[str]] = {}
    for path in paths:
        for length, step in enumerate(path):
            steps.setdefault(path[:length], set()).add(str(step))
    for parent, known in steps.items():
        there = value_at(document.data, parent)
        for name in there if isinstance(there, dict) else ():
            meant = next((one for one in sorted(known) if is_slip(name, one)), None)
            if name not in known and meant is not None:
                yield document.error((*parent, name), "unknown field", f"did you mean {meant}?")


def rename(document: Document, names: Mapping[str, str]) -> Document:
    """Returns a mapping with other names for some of its values."""
    return MergedDocument(
        document, {names.get(name, name): part for name, part in parts(document).items()}
    )


def camel_case(name: str, words: Mapping[str, str]) -> str:
    """Converts a name with dashes or underscores; `words` lists names with other spellings."""
    first, *others = re.split("[-_]", name)
    return words.get(name) or first + "".join(word.capitalize() for word in others)


def of_managers(fields: Mapping[str, Document]) -> dict[str, Document]:
    """Returns the fields that the managers read, and those that may be misspelt ones.

    Of products whose fields are not all known, the others would look unknown.
    """
    return {
        name: part
        for name, part in fields.items()
        if any(is_slip(name, known) for known in (*DECODED, "maxPods"))
    }


def scalar(place: Document, data: Any) -> Document:
    """Returns a value as a document that has the file and line of another one."""
    file, line = place.locate()
    return Document(file, (line - 1, {}), data)


def text_of(value: Any) -> str:
    """Returns a scalar as it is written in YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _drop(_word: str, _place: Document) -> None:
    """Accepts a word that belongs to no flag."""


def read_flags(
    words: Sequence[tuple[str, Document]], on_other: Callable[[str, Document], None] = _drop
) -> Iterator[Flag]:
    """Yields the flags among the words of a command line, each with its place.

    A value follows its flag after ``=`` or as the next word, unless the flag is a switch.

    Args:
        words: the words.
        on_other: is called with each word that belongs to no flag.

    Raises:
        DocumentError: the kubelet refuses a word, or the last one is a flag of the managers without
            its value.
    """
    left = iter(words)
    for word, place in left:
        if not re.match("--*[A-Za-z]", word):
            on_other(word, place)
            continue
        written, separator, value = _split_flag(word, place)
        name = written.replace("_", "-")
        if not separator and name in SWITCHES:
            value = "true"
        elif not separator:
            following = next(left, None)
            if following is None and field(name):
                fix = f"write --{written}=VALUE"
                raise place.error((), f"flag needs an argument: --{written}", fix)
            value = following[0] if following else ""
        yield Flag(name, value, scalar(place, value))


def _split_flag(word: str, place: Document) -> tuple[str, str, str]:
    """Returns the name in a word, its separator and its value, each empty if there is none.

    Raises:
        DocumentError: the kubelet can't parse the word.
    """
    if word.startswith("--"):
        return flag_name(word.removeprefix("--"), place), *word.partition("=")[1:]
    if word[1] in SHORT:
        return word[1], word[2:3], word[2:].removeprefix("=")
    fix = f"write -{word}"
    raise place.error((), f"unknown shorthand flag: {word[1]!r} in {word}", fix)


def flag_name(text: str, place: Document) -> str:
    """Returns the name at the start of a text that gets two dashes in front.

    Raises:
        DocumentError: it has dashes of its own, which the kubelet refuses.
    """
    name = text.partition("=")[0]
    if name.startswith("-"):
        raise place.error((), f"bad flag syntax: --{text}", "remove the extra dashes")
    return name


def mapped_flags(document: Document) -> Iterator[Flag]:
    """Yields the flags in a mapping from names to values, or to lists of values.

    Raises:
        DocumentError: the kubelet refuses a name.
    """
    for name, part in parts(document).items():
        several = part.data if isinstance(part.data, list) else [part.data]
        for value in several:
            text = text_of(value)
            yield Flag(flag_name(name, part).replace("_", "-"), text, scalar(part, text))


def listed_flags(document: Document) -> Iterator[Flag]:
    """Yields the flags in a text or a list of texts, such as ``--max-pods=99`` or ``max-pods=99``.

    Raises:
        DocumentError: the value is something else.
    """
    words = [(f"--{word.removeprefix('--')}", at) for word, at in _texts(document)]
    yield from read_flags(words)


def joined_flags(document: Document) -> Iterator[Flag]:
    """Yields the flags in a text or a list of texts that a product joins into a command line.

    Raises:
        DocumentError: the value is something else, or has words that aren't flags.
    """
    yield from read_flags(
        [(word, at) for text, at in _texts(document) for word in text.split()], refuse_word
    )


def refuse_word(word: str, place: Document) -> None:
    """Refuses a word that belongs to no flag.

    Raises:
        DocumentError: always.
    """
    fix = "remove it, or write flags as --NAME=VALUE"
    raise place.error((), f"unknown command {word}: a kubelet takes only flags", fix)


def _texts(document: Document) -> Iterator[tuple[str, Document]]:
    several = [()] if isinstance(document.data, str) else [(n,) for n in _indices(document)]
    for path in several:
        part = document.below(path)
        if not isinstance(part.data, str):
            raise document.error(path, "must be a flag", "write it as name=value, in quotes")
        yield part.data, part


def _indices(document: Document) -> Iterable[int]:
    if not isinstance(document.data, list):
        raise document.error((), "must be a list of flags", "write one flag per item")
    return range(len(document.data))
