"""Reads a text that describes a machine, whatever its format."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from numaproof.formats.machines import (
    kubelet_log,
    kubernetes,
    lscpu,
    lstopo,
    machine_info,
    numactl,
    refusals,
    sections,
)
from numaproof.formats.machines.assembly import assemble
from numaproof.formats.machines.assumptions import Assumptions
from numaproof.formats.machines.description import Description, DescriptionError, MachineText
from numaproof.inputs import documents, door, transcripts
from numaproof.inputs.errors import DocumentError
from numaproof.inputs.quoting import uncomment, unquote
from numaproof.reference.cadvisor.discovery import NO_CPU

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_TEXTS: tuple[tuple[Callable[[str], bool], Callable[[str], Description]], ...] = (
    (lstopo.is_lstopo, lstopo.read),
    (numactl.is_numactl, numactl.read),
    (lscpu.is_lscpu, lscpu.read),
)
"""How to recognise and read formats that aren't documents."""

_DOCUMENTS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Description]], ...] = (
    (lscpu.is_lscpu_json, lscpu.read_json),
    (kubernetes.is_object, kubernetes.read),
)
"""The same for JSON and YAML."""


def read(
    content: bytes,
    file: str,
    assume: Iterable[tuple[str, int]] = (),
    no_cpu: str = NO_CPU,
    node: Description | None = None,
) -> MachineText | None:
    """Reads a machine from the contents of a file; None if they describe none.

    Args:
        content: the contents.
        file: the name of the file.
        assume: what to assume where the text says nothing; see `assumptions.parse`.
        no_cpu: the release's error for a machine without CPUs.
        node: what the machine's Node shows; it supplies memory and huge pages.

    Raises:
        DocumentError: the text is incomplete or contradicts itself, or can't be used.
    """
    try:
        return _read(content, file, Assumptions(assume), no_cpu, node)
    except DescriptionError as error:
        raise DocumentError(file, error.line, "", str(error), error.fix) from None
    except RecursionError:
        raise DocumentError(file, 0, "", "is nested too deeply", "flatten it") from None


def _read(
    content: bytes, file: str, assume: Assumptions, no_cpu: str, node: Description | None
) -> MachineText | None:
    content = door.without_utf16(content)
    text = content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    # Web pages and mails have non-breaking spaces.
    text = uncomment(unquote(text.replace("\u00a0", " ")))
    if several := sections.read(text):
        return assemble(file, _with_node(several, node), assume, no_cpu)
    if kubelet_log.LINE in text and kubelet_log.is_log(text):
        assume.require_used("a kubelet's log")
        return kubelet_log.read(file, text)
    for recognise, describe in _TEXTS:
        if recognise(text):
            return assemble(file, _with_node(describe(text), node), assume, no_cpu)
    data = _document(transcripts.outputs(text), file)
    if machine_info.is_machine_info(data):
        assume.require_used(machine_info.FORMAT)
        return machine_info.read(file, data)
    for recognise_data, describe_data in _DOCUMENTS:
        if recognise_data(data):
            return assemble(file, _with_node(describe_data(data), node), assume, no_cpu)
    if found := refusals.refusal(content) or refusals.document_refusal(text, data):
        name, fix = found
        raise DescriptionError(f"is {name}", fix)
    return None


def _with_node(text: Description, node: Description | None) -> Description:
    """Adds the memory and huge pages of a Node to a text that shows none."""
    if node is None:
        return text
    nodes = text.nodes or ()
    if text.memory is None and all(one.memory is None for one in nodes):
        text = replace(text, memory=node.memory)
    if text.hugepages is None and all(one.hugepages is None for one in nodes):
        text = replace(text, hugepages=node.hugepages)
    return text


_MARKS = re.compile(r"\A(?:\s*---(?=\s))+|\s---\s*\Z")


def _document(text: str, file: str) -> Any:
    """The contents of JSON or YAML; None if it is neither, or a machine profile."""
    text = _MARKS.sub("", text)
    if re.match(r"\s*[{\[]", text):
        try:
            # lscpu writes a bare hyphen for the numbers of CPUs that are offline.
            return json.loads(re.sub(r'(": )-(?=,?\n)', r"\1null", text))
        except (ValueError, RecursionError):
            return None
    if not re.search(r"^kind: *\S", text, re.MULTILINE):
        return None
    try:
        return documents.load(text, file=file, aliases=True).data
    except DocumentError:
        if re.search(r"^kind: *(?:Node|List|\w*[tT]opology(?:List)?) *$", text, re.MULTILINE):
            raise
        return None
