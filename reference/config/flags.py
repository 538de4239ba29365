"""The kubelet's command line: flags that set fields of the configuration.

``flags.txt`` next to this module lists the flags of all releases. (Kubernetes documentation,
"kubelet"; flags are parsed as in the Go package ``pflag``.)
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numaproof.reference.config.fields import ConfigError
from numaproof.reference.errors import UnsupportedError
from numaproof.reference.golang import durations, numbers
from numaproof.reference.golang.text import boolean, quote
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numaproof.reference.config import fields


class FlagError(ValueError):
    """The value of a flag cannot be parsed; the text is the kubelet's."""


@cache
def table() -> Mapping[str, frozenset[str]]:
    text = Path(__file__).with_name("flags.txt").read_text(encoding="ascii")
    head, *rows = [line.split() for line in text.split("\n\n")[1].splitlines()]
    return {
        release: frozenset(row[0] for row in rows if row[column] == "x")
        for column, release in enumerate(head[1:], start=1)
    }


def field(name: str) -> str:
    """Returns the field that a flag sets if the managers read it, or else an empty text."""
    return _FIELDS[name][0] if name in _FIELDS else ""


def relevant(command_line: Sequence[str], release: str) -> tuple[str, ...]:
    """Drops flags that the release has but that do not concern any of the managers.

    All flags have the form ``--name=value``.
    """
    ignored = table()[release] - _FIELDS.keys()
    return tuple(
        one for one in command_line if one.partition("=")[0].removeprefix("--") not in ignored
    )


def read(
    command_line: Sequence[str], release: str, single_pair_flags: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Returns the decoded configuration fields that a command line sets, by name.

    If a flag is repeated, the last value wins, but maps are merged. In `single_pair_flags`, a comma
    is part of the value.

    Raises:
        ConfigError: the release does not have a flag, or a value cannot be parsed.
        UnsupportedError: a flag does not concern any of the managers.

    Requirements: CPU-CONFIG-016, CPU-CONFIG-017, CPU-CONFIG-018, CPU-CONFIG-019, CPU-CONFIG-020,
    TOPO-POLICY-017.
    """
    found: dict[str, Any] = {}
    for name, value in _flags(command_line, table()[release]):
        field, reader = _FIELDS[name]
        reader = _one_pair if name in single_pair_flags else reader
        if field == "reservedMemory" and not value:
            continue  # an empty value sets nothing
        try:
            found[field] = reader(value, found.get(field))
        except FlagError as error:
            raise _parse_error(
                f"invalid argument {quote(value)} for {quote(f'--{name}')} flag: {error}"
            ) from None
    return found


def _flags(command_line: Sequence[str], known_flags: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yields the flags' names and values in order; a value can be a separate argument."""
    commands = []
    left: Iterator[str] = iter(command_line)
    for argument in left:
        if not argument.startswith("-") or argument == "-":
            commands.append(argument)
        elif argument == "--":
            commands += left
        else:
            name = _name(argument, known_flags)
            _, separator, value = argument.partition("=")
            if not separator:
                following = "true" if name in SWITCHES else next(left, None)
                if following is None:
                    raise _parse_error(f"flag needs an argument: {argument}")
                value = following
            yield name, value
    if commands:
        raise ConfigError(f"unknown command {commands[0]}")


def _name(argument: str, known_flags: frozenset[str]) -> str:
    if not argument.startswith("--"):
        if argument[1] in SHORT:
            raise UnsupportedError(f"flag {argument}")
        raise _parse_error(f"unknown shorthand flag: '{argument[1]}' in {argument}")
    written = argument.removeprefix("--").partition("=")[0]
    if not written or written.startswith("-"):
        raise _parse_error(f"bad flag syntax: {argument}")
    name = written.replace("_", "-")
    if name not in known_flags:
        raise _parse_error(f"unknown flag: --{written}")
    if name not in _FIELDS:
        raise UnsupportedError(f"flag --{name}")
    return name


def _parse_error(problem: str) -> ConfigError:
    return ConfigError(f"failed to parse kubelet flag: {problem}")


# The values


def _text(value: str, _: Any) -> str:
    return value


def _truth(value: str, _: Any) -> bool:
    try:
        return boolean(value)
    except ValueError as error:
        raise FlagError(str(error)) from None


def _duration(value: str, _: Any) -> str:
    try:
        return durations.format_duration(durations.nanoseconds(value))
    except durations.DurationError as error:
        raise FlagError(str(error)) from None


def _pairs(value: str, earlier: Any, separator: str = "=", of: str = "string") -> dict[str, str]:
    found: dict[str, str] = earlier or {}
    for pair in filter(None, value.split(",")):
        found |= _pair(pair, separator, of)
    return found


def _pair(text: str, separator: str = "=", of: str = "string") -> dict[str, str]:
    key, there, value = text.partition(separator)
    if not there:
        raise FlagError(f"malformed pair, expect string{separator}{of}")
    return {key.strip(): value.strip()}


def _one_pair(value: str, earlier: Any) -> dict[str, str]:
    return {**(earlier or {}), **_pair(value)}


def _thresholds(value: str, earlier: Any) -> dict[str, str]:
    return _pairs(value, earlier, "<")


def _gates(value: str, earlier: Any) -> dict[str, bool]:
    found: dict[str, bool] = earlier or {}
    for pair in filter(None, value.split(",")):
        for name, on in _pair(pair, of="bool").items():
            try:
                found[name] = _truth(on, None)
            except FlagError as error:
                raise FlagError(f"invalid value of {name}: {on}, err: {error}") from None
    return found


_FORMAT = (
    "the reserved memory has incorrect format, expected "
    "numaNodeID:type=quantity[,type=quantity...], got {}"
)


def _reservations(value: str, earlier: Any) -> fields.MemoryReservations:
    found = [*(earlier or ())]
    for reservation in value.split(";"):
        node, *amounts = reservation.split(":")
        if len(amounts) != 1:
            raise FlagError(_FORMAT.format(reservation))
        found.append((_node(node), dict(map(_amount, amounts[0].split(",")))))
    return tuple(found)


def _node(text: str) -> int:
    """Parses a node's id and keeps its lower 32 bits, as the kubelet does."""
    try:
        number = numbers.parse_signed(text)
    except numbers.NumeralError:
        raise FlagError(
            f"failed to convert the NUMA node ID, expected integer, got {text}"
        ) from None
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _amount(text: str) -> tuple[str, str]:
    kind, *amounts = text.split("=")
    if len(amounts) != 1:
        raise FlagError(
            f"the reserved limit has incorrect value, expected type=quantity, got {text}"
        )
    if kind != "memory" and not kind.startswith("hugepages-"):
        raise FlagError(f"memory type conversion error, unknown type: {quote(kind)}")
    try:
        quantity.parse(amounts[0])
    except quantity.QuantityError:
        raise FlagError(f"failed to parse the quantity: {amounts[0]}") from None
    return kind, amounts[0]


_FIELDS: Mapping[str, tuple[str, Callable[[str, Any], Any]]] = {
    "cpu-cfs-quota": ("cpuCFSQuota", _truth),
    "cpu-manager-policy": ("cpuManagerPolicy", _text),
    "cpu-manager-policy-options": ("cpuManagerPolicyOptions", _one_pair),
    "cpu-manager-reconcile-period": ("cpuManagerReconcilePeriod", _duration),
    "eviction-hard": ("evictionHard", _thresholds),
    "feature-gates": ("featureGates", _gates),
    "kube-reserved": ("kubeReserved", _pairs),
    "memory-manager-policy": ("memoryManagerPolicy", _text),
    "reserved-cpus": ("reservedSystemCPUs", _text),
    "reserved-memory": ("reservedMemory", _reservations),
    "system-reserved": ("systemReserved", _pairs),
    "topology-manager-policy": ("topologyManagerPolicy", _text),
    "topology-manager-policy-options": ("topologyManagerPolicyOptions", _pairs),
    "topology-manager-scope": ("topologyManagerScope", _text),
}
"""The field that each flag sets, and the function that parses its value."""

SHORT = ("h", "v")
"""One-letter flags, none of which concerns the managers."""

SWITCHES = frozenset(
    {
        "anonymous-auth",
        "authentication-token-webhook",
        "cgroups-per-qos",
        "contention-profiling",
        "cpu-cfs-quota",
        "enable-controller-attach-detach",
        "enable-debugging-handlers",
        "enable-load-reader",
        "enable-server",
        "exit-on-lock-contention",
        "experimental-allocatable-ignore-eviction",
        "fail-cgroupv1",
        "fail-swap-on",
        "keep-terminated-pod-volumes",
        "kernel-memcg-notification",
        "local-storage-capacity-isolation",
        "log-cadvisor-usage",
        "log-json-split-stream",
        "log-text-split-stream",
        "make-iptables-util-chains",
        "protect-kernel-defaults",
        "register-node",
        "register-schedulable",
        "rotate-certificates",
        "rotate-server-certificates",
        "runonce",
        "serialize-image-pulls",
        "storage-driver-secure",
    }
)
"""Flags without a required value."""
