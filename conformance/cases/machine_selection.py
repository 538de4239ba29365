"""Which machines a case asks for."""

from __future__ import annotations

from numaproof.conformance.cases.written import Written

Comparison = int | str
"""A value, or a comparison with one (``">= 2"``)."""


class Machines(Written, frozen=True):
    """Which machines a case runs on: names (globs), properties, or a condition over properties.

    A property is compared with a value (``2``, ``true``) or a comparison (``">= 2"``); the
    properties are those of `numaproof.conformance.cases.machine_properties.Facts`.
    """

    names: tuple[str, ...] = ()
    where: str = ""
    cpus: Comparison | None = None
    cores: Comparison | None = None
    sockets: Comparison | None = None
    numa_nodes: Comparison | None = None
    cpu_nodes: Comparison | None = None
    memory_only_nodes: Comparison | None = None
    uncore_caches: Comparison | None = None
    smt: Comparison | None = None
    cpus_per_node: Comparison | None = None
    cpus_per_socket: Comparison | None = None
    cpus_per_uncore_cache: Comparison | None = None
    uniform: bool | None = None
    dense: bool | None = None
    memory_nodes: Comparison | None = None
    hugepage_sizes: Comparison | None = None
    equidistant: bool | None = None

    def comparisons(self) -> dict[str, Comparison]:
        """The properties that are asked for, by name."""
        given = {name: getattr(self, name) for name in self.__struct_fields__[2:]}
        return {name: value for name, value in given.items() if value is not None}
