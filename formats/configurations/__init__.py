"""The formats in which operators have a kubelet's configuration, one module for each.

`read` returns what a file contains, whatever its format; `choose` picks one of several
configurations, and `combine` puts those of several files on top of each other.
"""

from __future__ import annotations

import posixpath
import re
from contextlib import suppress
from functools import reduce
from typing import TYPE_CHECKING, Any

from numaproof.formats.configurations import (
    bottlerocket,
    cloud,
    clusters,
    command_lines,
    config_map,
    edits,
    eks,
    flag_log,
    heredocs,
    karpenter,
    kind,
    kubeadm,
    kubespray,
    machine_config,
    openshift,
    others,
    performance_profile,
    plain,
    rancher,
    talos,
    user_data,
)
from numaproof.formats.configurations.configuration import (
    EFFECTIVE,
    Configuration,
    Flag,
    Format,
    NoConfigurationError,
    items_at,
    misspelt,
    no_configuration,
    stack,
    with_drop_in,
    with_place,
)
from numaproof.formats.configurations.environment import require_flags, with_environment
from numaproof.inputs import transcripts
from numaproof.inputs.documents import Document, DocumentError, MergedDocument, PathTuple
from numaproof.inputs.plurals import plural
from numaproof.inputs.quoting import unquote
from numaproof.inputs.streams import split_documents
from numaproof.reference.config import fields, flags

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


__all__ = ["EFFECTIVE", "Configuration", "Flag", "choose", "combine", "read"]


def _read_document(document: Document, text: str) -> Iterator[Configuration]:
    """Yields the configurations in a document of any format.

    Raises:
        DocumentError: it contains none; the message says what it is, and suggests a fix.
    """
    content = document.data
    if not isinstance(content, dict):
        others.refuse_list(document)
        raise document.error((), "must be a mapping", plain.FIX)
    if str(content.get("kind")).endswith("List"):
        items = [document.below(path) for path, _ in items_at(document, ("items",))]
        if not items:
            raise no_configuration(document, ("items",), "an empty list", plain.FIX)
        yield from _read_all(items, text)
        return
    known = next((one for one in FORMATS if one.claims(content)), None)
    if known is not None:
        errors = tuple(misspelt(document, known.marks))
        for one in known.read(document, text):
            yield one._replace(errors=(*one.errors, *errors))
        return
    if content.get("kind") == plain.KIND:
        _refuse_marks(document)
    refusal = others.refusal(document)
    if refusal is not None:
        raise refusal
    yield from plain.read(document)


def _refuse_marks(document: Document) -> None:
    """Raises an error if a plain document has what belongs in another format."""
    for one in FORMATS:
        mark = one.mark(document.data)
        if mark is not None and one.product != "configz output":
            path = ".".join(map(str, mark))
            message = f"{one.product} with another kind: the kubelet does not read {path}"
            fix = (
                "restore its own apiVersion and kind" if one.group else "remove apiVersion and kind"
            )
            raise document.error(mark[:1], message, fix)


def read(text: str, file: str) -> tuple[Configuration, ...]:
    """Reads the configurations in a file's text.

    Args:
        text: the text, in any of the formats.
        file: the file's name.

    Raises:
        DocumentError: it contains none, or cannot be read.
    """
    try:
        found = tuple(_read_text(text, file))
    except DocumentError as error:
        template = _TEMPLATE.search(text)
        if template is None:
            raise
        lines = text.splitlines()
        is_there = 0 < error.line <= len(lines) and _TEMPLATE.search(lines[error.line - 1])
        if not is_there and "not YAML" not in error.message:
            raise
        line = text.count("\n", 0, template.start()) + 1
        raise _template_error(file, line, template[0]) from None
    for one in found:
        _refuse_templates(one)
    left = () if transcripts.parts(unquote(text)) else tuple(edits.notes(text, file))
    return tuple(one._replace(notes=(*one.notes, *left)) for one in found)


def _read_text(text: str, file: str) -> Iterator[Configuration]:
    text = unquote(text)
    others.refuse_text(text, file)
    if commands := transcripts.parts(text):
        yield from _read_transcript(commands, file)
        return
    written = _written_by_script(text, file)
    if written:
        yield _stack(written)
    elif flag_log.is_flag_log(text):
        yield from flag_log.read(text, file)
    elif user_data.is_user_data(text):
        yield _read_user_data(text, file)
    elif bottlerocket.is_toml(text):
        yield from bottlerocket.read(text, file)
    elif command_lines.is_command_line(text):
        yield from command_lines.read(text, file)
    elif text.lstrip().startswith("#!"):
        line = text.count("\n", 0, text.index("#!")) + 1
        raise DocumentError(file, line, "", "a script without flags of the kubelet", plain.FIX)
    else:
        # Tabs in JSON are spaces; in YAML, they are errors.
        is_json = text.lstrip().startswith("{")
        documents = [*split_documents(text.replace("\t", " ") if is_json else text, file)]
        if not documents:
            raise DocumentError(file, 1, "", "no document in the file", plain.FIX)
        yield from _read_all(documents, text)


def _stack(layers: Sequence[Configuration]) -> Configuration:
    """Returns the layers that a script or user data write on top of each other.

    Raises:
        DocumentError: nothing results.
    """
    resolved = with_environment(layers)
    found = stack(resolved)
    if not found.document.data:
        require_flags(layers, resolved)
    return found


def _read_transcript(commands: Sequence[transcripts.Part], file: str) -> Iterator[Configuration]:
    """Yields what the commands and outputs in a transcript result in, for each host.

    Raises:
        DocumentError: they contain no configuration.
    """
    hosts: dict[str, dict[str, tuple[Configuration, ...]]] = {}
    refusals: list[DocumentError] = []
    for part in commands:
        is_command = command_lines.is_command_line(part.text)
        text = part.text if is_command else part.output
        if not text.strip():
            continue
        try:
            found = tuple(_read_text(text, file))
        except DocumentError as error:
            message = f"the output of `{part.command}`: {error.message}"
            refusals.append(DocumentError(file, error.line, error.field, message, error.fix))
        else:
            # What a command shows again replaces what it showed before.
            hosts.setdefault(part.host, {})[part.command] = found
    if not hosts:
        fix = "save the configuration that it shows in a file of its own"
        raise next(
            iter(refusals),
            DocumentError(file, 1, "", "a terminal's transcript without a configuration", fix),
        )
    notes = tuple(_left_out(refusals))
    for host, outputs in hosts.items():
        for one in _shown_on_host(outputs):
            name = one.name or (host if len(hosts) > 1 else "")
            yield one._replace(name=name, notes=(*one.notes, *notes))


def _shown_on_host(
    outputs: Mapping[str, tuple[Configuration, ...]],
) -> Iterator[Configuration]:
    """Yields the configuration of a host, or each one if it can have only one of them."""
    layers = [one for found in outputs.values() for one in found]
    plain_ones = [
        command
        for command, found in outputs.items()
        if any(not one.product for one in found) and ".d/" not in command
    ]
    if len(plain_ones) > 1 or any(one.name for one in layers):
        for command, found in outputs.items():
            for one in found:
                yield one._replace(name=one.name or _shown_file(command))
        return
    yield _stack(sorted(layers, key=lambda layer: bool(layer.product)))


def _shown_file(command: str) -> str:
    """Returns the file in a command, or else the command."""
    return next((word for word in command.split() if "/" in word or "." in word), command)


def _written_by_script(text: str, file: str) -> list[Configuration]:
    """Returns what the here-documents and the commands of a script result in; none without either.

    Raises:
        DocumentError: its only here-document is not a configuration.
    """
    # In YAML, they are part of strings, such as commands of cloud-init.
    bodies = [] if command_lines.is_yaml(text) else [*heredocs.bodies(text)]
    commands = heredocs.without_bodies(text)
    found: list[Configuration] = []
    refusals: list[DocumentError] = []
    for body in bodies:
        read_body = cloud.read_aks if cloud.is_for_aks(commands, body) else _read_text
        try:
            found += read_body(body, file)
        except DocumentError as error:
            refusals.append(error)
    if bodies and command_lines.is_command_line(commands):
        with suppress(NoConfigurationError):
            found += command_lines.read(commands, file)
    if len(bodies) == 1 and refusals and not found:
        raise refusals[0]
    if found:
        left = (
            f"{one.file}:{one.line}: left out a here-document: {one.message}" for one in refusals
        )
        found[-1] = found[-1]._replace(notes=(*found[-1].notes, *left))
    return found


def _read_user_data(text: str, file: str) -> Configuration:
    """Returns what the parts of user data, which can also be scripts, result in.

    Raises:
        DocumentError: no part has a configuration, or one that isn't a script is invalid.
    """
    layers: list[Configuration] = []
    refusals: list[DocumentError] = []
    for part in user_data.message_parts(text):
        try:
            layers += _read_text(part, file)
        except DocumentError as error:
            if not part.lstrip().startswith(("#!", "#cloud-config")):
                raise
            refusals.append(error)
    if not layers:
        raise DocumentError(file, 1, "", "user data without a kubelet configuration", plain.FIX)
    found = _stack(layers)
    return found._replace(notes=(*found.notes, *_left_out(refusals)))


def _read_all(documents: Sequence[Document], text: str) -> Iterator[Configuration]:
    """Yields the configurations in the documents of a file.

    Documents without a name are for the same node, for example kubeadm's. Documents without a
    configuration are left out with a note, unless there is no other.

    Raises:
        DocumentError: there is no configuration, or one is invalid.
    """
    found: list[Configuration] = []
    refusals: list[DocumentError] = []
    for document in clusters.merge_kops_clusters(documents):
        try:
            found += _read_document(document, text)
        except NoConfigurationError as error:
            refusals.append(error)
    if not found:
        if len(refusals) == 1:
            raise refusals[0]
        message = f"no kubelet configuration in {plural(len(documents), 'document')}"
        fix = f"the first: {refusals[0].message}" if refusals else plain.FIX
        raise no_configuration(documents[0], (), message, fix)
    if sum(not one.product for one in found) > 1:
        found = [
            one if one.product else one._replace(name=f"{number}")
            for number, one in enumerate(found, 1)
        ]
    notes = tuple(_left_out(refusals))
    unnamed = [one for one in found if not one.name]
    named = [one for one in found if one.name]
    for one in (*_for_roles(unnamed), *named):
        yield one._replace(notes=(*one.notes, *notes))


def _for_roles(layers: Sequence[Configuration]) -> Iterator[Configuration]:
    """Yields what the layers result in: for each role, if several have their own flags."""
    roles = {one.role for one in layers if one.role and one.flags}
    if len(roles) <= 1:
        if layers:
            yield stack(layers)
        return
    for role in sorted(roles):
        yield stack([one for one in layers if one.role in ("", role)])._replace(name=role)


def _left_out(refusals: Sequence[DocumentError]) -> Iterator[str]:
    if len(refusals) > MAX_LEFT_OUT:
        yield f"{refusals[0].file}: left out {len(refusals)} documents without a configuration"
    else:
        yield from (f"{one.file}:{one.line}: left out {one.message}" for one in refusals)


MAX_LEFT_OUT = 3
"""Maximum number of documents to list that were left out."""


def combine(layers: Sequence[Configuration], *, are_drop_ins: bool = False) -> Configuration:
    """Returns the configurations of several files on top of each other.

    A KubeletConfiguration on top of another file is a drop-in. So is the first one, on top of the
    kubelet's defaults, if all files are drop-ins.

    Raises:
        DocumentError: units and environment files result in no flags, or in templates.
    """
    unset = Configuration("", "", MergedDocument(layers[0].document, {}))
    resolved = with_environment(layers)
    require_flags(layers, resolved)
    layers = resolved
    found = reduce(_on_top, [unset, *layers] if are_drop_ins else layers)
    if len(layers) > 1:
        files = ", ".join(one.document.file for one in layers)
        found = found._replace(notes=(*found.notes, f"files, in order: {files}"))
    found = found._replace(notes=(*found.notes, *_missing_files(found, layers)))
    _refuse_templates(found)
    return found


def _missing_files(combination: Configuration, layers: Sequence[Configuration]) -> Iterator[str]:
    """Yields a note for each environment file of a unit that isn't among the layers' files."""
    names = {posixpath.basename(one.document.file) for one in layers}
    for path, place in combination.environment_files:
        if posixpath.basename(path) not in names:
            yield with_place(place, (), f"the unit also reads {path}: name that file also")


def _on_top(lower: Configuration, upper: Configuration) -> Configuration:
    return upper.on(lower) if upper.product else with_drop_in(lower, upper)


def choose(several: Sequence[Configuration], file: str, name: str) -> Configuration:
    """Returns the configuration with a name; the only one if the name is empty.

    Raises:
        DocumentError: there is none with the name, there are several to choose from, or two have
            the same name.
    """
    first, *others = several
    names = ", ".join(one.name or "(unnamed)" for one in several)
    _, line = first.document.locate()
    seen: set[str] = set()
    for one in several:
        if one.name in seen:
            where, message = one.document.line(), f"another configuration {one.name!r}"
            raise DocumentError(file, where, "", message, "rename one of the two")
        seen |= {one.name} - {""}
    if name:
        matching = [one for one in several if one.name == name]
        if not matching:
            raise DocumentError(file, line, "", f"no configuration {name!r}", f"it has: {names}")
        return matching[0]
    if any(_settings(one) != _settings(first) for one in others):
        message = f"{plural(len(several), 'configuration')}: {names}"
        raise DocumentError(file, line, "", message, f"choose one: {file}#{several[-1].name}")
    if others:
        return first._replace(notes=(*first.notes, f"{file}: the same for {names}"))
    return first


def _settings(configuration: Configuration) -> tuple[Any, list[str]]:
    return configuration.document.data, [str(flag) for flag in configuration.flags]


_TEMPLATE = re.compile(r"\{\{|\{%")
_VARIABLE = re.compile(r"\{\{(?:.*?\}\})?|\{%(?:.*?%\})?|\$\{\w+\}?|\$\(|\$[A-Za-z_]\w*")


def _template_error(file: str, line: int, mark: str) -> DocumentError:
    fix = "render it first, for example with `helm template` or `envsubst`, and use the result"
    return DocumentError(file, line, "", f"a template: it contains {mark}", fix)


def _refuse_templates(configuration: Configuration) -> None:
    """Raises an error if the value of a setting that the managers read is not rendered."""
    for name in fields.DECODED:
        for path, value in _texts(configuration.document.data.get(name), (name,)):
            if mark := _VARIABLE.search(value):
                raise _template_error(*configuration.document.locate(path), mark[0])
    for flag in configuration.flags:
        mark = _VARIABLE.search(flag.value)
        if mark and flags.field(flag.name):
            raise _template_error(*flag.place.locate(), mark[0])


def _texts(value: Any, path: PathTuple) -> Iterator[tuple[PathTuple, str]]:
    match value:
        case str():
            yield path, value
        case dict():
            for name, one in value.items():
                yield from _texts(one, (*path, name))
        case list():
            for number, one in enumerate(value):
                yield from _texts(one, (*path, number))


FORMATS: tuple[Format, ...] = (
    openshift.FORMAT,
    *machine_config.FORMATS,
    performance_profile.FORMAT,
    config_map.config_map_format(_read_document),
    kubeadm.FORMAT,
    *kubeadm.CLUSTER_API,
    kind.FORMAT,
    talos.FORMAT,
    *rancher.FORMATS,
    *eks.FORMATS,
    *karpenter.karpenter_formats(_read_text),
    *cloud.FORMATS,
    *clusters.FORMATS,
    kubespray.FORMAT,
    plain.CONFIGZ,
)
"""The formats of documents; a plain KubeletConfiguration is none of them."""
