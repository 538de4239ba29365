"""The variables with which units start a kubelet.

systemd replaces variables in the command of a unit by those of the unit and, with precedence, by
those of its environment files. Without the unit, the variables count that kubelets' units use.
(systemd.exec(5), "EnvironmentFile"; systemd.service(5), "Command lines".)
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from numaproof.formats.configurations import wrappers
from numaproof.formats.configurations.configuration import (
    EFFECTIVE,
    Configuration,
    Flag,
    NoConfigurationError,
    refuse_word,
    with_place,
)
from numaproof.inputs.documents import DocumentError
from numaproof.reference.config.flags import field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.formats.configurations.configuration import Words
    from numaproof.inputs.documents import Document

FILE = "an environment file"
"""The product of an environment file."""

VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
FLAG = re.compile(r"\s*--[a-z]")

INSTALLERS = frozenset({"INSTALL_K3S_EXEC", "INSTALL_RKE2_EXEC"})
"""The variables with flags for the installers of k3s and RKE2."""

_OF_UNITS = frozenset(
    (
        # kubeadm, in Debian and RPM packages; the last seven before Kubernetes 1.11
        "KUBELET_KUBECONFIG_ARGS",
        "KUBELET_CONFIG_ARGS",
        "KUBELET_KUBEADM_ARGS",
        "KUBELET_EXTRA_ARGS",
        "KUBELET_AUTHZ_ARGS",
        "KUBELET_CADVISOR_ARGS",
        "KUBELET_CERTIFICATE_ARGS",
        "KUBELET_CGROUP_ARGS",
        "KUBELET_DNS_ARGS",
        "KUBELET_NETWORK_ARGS",
        "KUBELET_SYSTEM_PODS_ARGS",
        # Fedora, Kubespray, EKS
        "KUBELET_ARGS",
        "KUBELET_ADDRESS",
        "KUBELET_API_SERVER",
        "KUBELET_CLOUDPROVIDER",
        "KUBELET_HOSTNAME",
        "KUBELET_LOG_LEVEL",
        "KUBELET_NETWORK_PLUGIN",
        "KUBELET_PORT",
        "KUBELET_VOLUME_PLUGIN",
        "KUBE_ALLOW_PRIV",
        "KUBE_LOGTOSTDERR",
        "KUBE_LOG_LEVEL",
        "NODEADM_KUBELET_ARGS",
        # kOps, Debian's own package; GKE; AKS; OpenRC
        "DAEMON_ARGS",
        "KUBELET_OPTS",
        "KUBELET_FLAGS",
        "KUBELET_CGROUP_FLAGS",
        "KUBELET_CONFIG_FILE_FLAGS",
        "KUBELET_CONTAINERD_FLAGS",
        "KUBELET_CONTAINER_RUNTIME_FLAG",
        "KUBELET_TLS_BOOTSTRAP_FLAGS",
        "command_args",
    )
)
"""The variables that the units of kubelets use."""

KNOWN = _OF_UNITS | INSTALLERS
"""The variables that count without a unit."""


def has_flags(words: Words) -> bool:
    """Whether a flag is among some words."""
    return any(FLAG.match(word) for word, _ in words)


def with_environment(layers: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """Returns layers of a configuration in which commands and variables have become flags.

    The last command decides which variables count, whatever the order of the layers.
    """
    commands = [one for one in layers if one.command]
    variables: dict[str, Words] = {}
    for one in sorted(layers, key=lambda layer: layer.product == FILE):
        variables |= one.variables
    last = commands[-1] if commands else None
    used = _names(last.command) if last else KNOWN
    why = "the command does not use it" if last else f"{_NOT_KNOWN} ({_FIX})"
    found = []
    for one in layers:
        counting = [name for name in one.variables if one.variables[name] is variables[name]]
        words = [*chain.from_iterable(variables[name] for name in counting if name in used)]
        if last:
            words = [*_expanded_words(last.command, variables)] if one is last else []
        new = with_flags(one, words)
        if one.command and one is not last:
            new = new.note((), "left out its command: a later one replaces it")
        left = {name: "a later one replaces it" for name in one.variables if name not in counting}
        left |= {name: why for name in one.variables if name not in used}
        notes = (
            _left_out(one.variables[name][0][1], name, reason)
            for name, reason in left.items()
            if has_flags(one.variables[name])
        )
        found.append(new._replace(notes=(*new.notes, *notes)))
    return tuple(found)


_NOT_KNOWN = "not a variable that kubelets' units use"
_FIX = "add the unit, or set KUBELET_EXTRA_ARGS"


def unknown_variable(name: str) -> str:
    """Returns a note about a variable that doesn't count."""
    return f"left out {name}: {_NOT_KNOWN} ({_FIX})"


def no_flags(layer: Configuration) -> NoConfigurationError:
    """Returns the error for a layer without flags."""
    fix = f"expected a line such as kubelet --reserved-cpus=0; or use the output of `{EFFECTIVE}`"
    file, line = layer.document.locate()
    message = f"{layer.product} without flags of the kubelet"
    return NoConfigurationError(file, line, "", message, fix)


def _left_out(place: Document, name: str, why: str) -> str:
    return with_place(place, (), f"left out {name}: {why}")


def require_flags(layers: Sequence[Configuration], results: Sequence[Configuration]) -> None:
    """Checks that flags result from the commands and variables of some layers, if there are any.

    Raises:
        DocumentError: no flags do.
    """
    parts = [(one, new) for one, new in zip(layers, results, strict=True) if _is_open(one)]
    if not parts or any(new.flags for _, new in parts):
        return
    (first, _), *_ = parts
    unknown = [
        (name, words[0][1])
        for one, _ in parts
        for name, words in one.variables.items()
        if has_flags(words)
    ]
    if not unknown or any(one.command for one, _ in parts):
        raise no_flags(first)
    (name, place), *_ = unknown
    file, line = place.locate()
    raise DocumentError(file, line, "", f"{name} is {_NOT_KNOWN}", _FIX)


def _is_open(layer: Configuration) -> bool:
    return bool(layer.command or layer.variables)


def with_flags(layer: Configuration, words: Words) -> Configuration:
    """Returns a layer with the flags among some arguments; unset variables are left out."""
    notes: list[str] = []

    def refuse(word: str, place: Document) -> None:
        if VARIABLE.match(word):
            notes.append(_left_out(place, word, _UNSET))
        else:
            refuse_word(word, place)

    flags: list[Flag] = []
    for flag in wrappers.kubelet_flags(words, refuse, notes.append):
        if VARIABLE.search(flag.value) and field(flag.name):
            notes.append(_left_out(flag.place, str(flag), _UNSET))
        else:
            flags.append(flag)
    return layer._replace(
        flags=(*layer.flags, *flags),
        notes=(*layer.notes, *notes),
        adds_defaults=layer.adds_defaults or wrappers.product(words),
        command=(),
        variables={},
    )


_UNSET = "the variable is not set in the file"


def _names(words: Words) -> set[str]:
    """Returns the variables in a command."""
    return {one[1] or one[2] for word, _ in words for one in VARIABLE.finditer(word)}


def _expanded_words(words: Words, variables: Mapping[str, Words]) -> Iterator[tuple[str, Document]]:
    """Yields the words of a command; variables that are words can have several words."""

    def expand(variable: re.Match[str]) -> str:
        there = variables.get(variable[1] or variable[2])
        return variable[0] if there is None else " ".join(word for word, _ in there)

    for word, place in words:
        variable = VARIABLE.fullmatch(word)
        if variable and (variable[1] or variable[2]) in variables:
            yield from variables[variable[1] or variable[2]]
        else:
            yield VARIABLE.sub(expand, word), place
