"""The configuration that a kubelet's flags and its file result in.

A flag overrides the field of the file that it stands for; feature gates are merged. (Kubernetes
documentation, "Set Kubelet Parameters Via A Configuration File".)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.inputs.documents import Document, MergedDocument, parts
from numaproof.reference.config import flags
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.deviations.releases import release
from numaproof.simulation import fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numaproof.formats.configurations import Flag
    from numaproof.protocol.messages import KubeletConfiguration


def with_flags(document: Document, flag_list: Sequence[Flag], kubernetes: str) -> Document:
    """Returns the fields of a file as flags override them in a kubelet of a release.

    The names of the flags, with dashes, also have a place. Flags that the kubelet refuses are left
    out.
    """
    found = parts(document)
    known = [one for one in flag_list if refusal(str(one), kubernetes) is None]
    for name, value in _read(map(str, known), kubernetes).items():
        place = next(one.place for one in reversed(known) if field(one.name) == name)
        file, line = place.locate()
        below = found[name].data if name in found else None
        if name == "featureGates" and isinstance(below, dict):
            found[name] = Document(file, (line - 1, {}), {**below, **value})
        else:
            found[name] = Document(file, (line - 1, {}), value)
    return MergedDocument(document, found, {f"--{one.name}": one.place for one in flag_list})


def refusal(argument: str, kubernetes: str) -> str | None:
    """Returns why a kubelet of a release refuses ``--name=value``; None if it does not."""
    try:
        _read([argument], kubernetes)
    except ConfigError as error:
        return str(error)
    return None


def remaining(
    arguments: Iterable[str], config: KubeletConfiguration, other: KubeletConfiguration
) -> tuple[str, ...]:
    """Returns the flags whose fields, or feature gates, are the same in another configuration."""

    def is_same(argument: str) -> bool:
        flag, _, text = argument.removeprefix("--").partition("=")
        name = field(flag)
        before, after = config.get(name), other.get(name)
        if name == "featureGates" and isinstance(before, dict) and isinstance(after, dict):
            own = [pair.partition("=")[0].strip() for pair in text.split(",")]
            return all(before.get(gate) == after.get(gate) for gate in own)
        return before == after

    return tuple(filter(is_same, arguments))


def field(flag: str) -> str:
    """Returns the field of the configuration that a flag sets; empty if there is none."""
    if own := flags.field(flag):
        return own
    folded = flag.replace("-", "")
    return next((one for one in fields.table()[fields.CONFIGURATION] if one.lower() == folded), "")


def _read(arguments: Iterable[str], kubernetes: str) -> dict[str, Any]:
    """Returns the fields that flags set.

    Raises:
        ConfigError: a kubelet of the release refuses a flag.
    """
    every = [*arguments]
    relevant = flags.relevant(every, kubernetes)
    found = flags.read(relevant, kubernetes, release(kubernetes).single_pair_flags)
    if "reservedMemory" in found:
        found["reservedMemory"] = [
            {"numaNode": node, "limits": dict(limits)} for node, limits in found["reservedMemory"]
        ]
    return {**dict(_others(one for one in every if one not in relevant)), **found}


def _others(arguments: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yields the fields with plain values set by flags that do not concern the managers."""
    known = fields.table()[fields.CONFIGURATION]
    for argument in arguments:
        flag, _, text = argument.removeprefix("--").partition("=")
        name = field(flag)
        match known[name].type if name else "":
            case "int32" | "int64" if text.lstrip("-").isdecimal():
                yield name, int(text)
            case "bool" if text.lower() in ("true", "false"):
                yield name, text.lower() == "true"
            case "string" | "Duration":
                yield name, text
            case "[]string":
                yield name, [one for one in text.split(",") if one]
