"""Violators of what the documents say of huge pages, and of memory in the merge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numaproof.reference import startup
from numaproof.reference.memory import requests
from numaproof.reference.topology import scope
from quality.seeding import Changes, SubjectBugs

seeds = SubjectBugs("documented-memory")


@seeds("MEM-HUGE-010")
def only_the_first_container_gets_huge_pages(changes: Changes) -> None:
    """Pins huge pages for a pod's main container, and memory alone for the others."""

    def part(original: Any, pod: Any, container: Any) -> Any:
        found = original(pod, container)
        if container is pod.containers[0]:
            return found
        return {kind: size for kind, size in found.items() if kind == requests.MEMORY}

    changes.around(requests, "part", part)


@seeds("MEM-HUGE-010")
def only_one_size_of_huge_pages_is_pinned(changes: Changes) -> None:
    """Reads one kind of huge pages of a container, whichever comes first."""

    def part(original: Any, pod: Any, container: Any) -> Any:
        found = original(pod, container)
        pages = [kind for kind in found if kind != requests.MEMORY][:1]
        return {kind: size for kind, size in found.items() if kind in (requests.MEMORY, *pages)}

    changes.around(requests, "part", part)


@seeds("MEM-HINT-009")
def merge_goes_without_memory(changes: Changes) -> None:
    """Merges the hints for devices and CPUs, and has memory follow where they lead."""
    changes.around(
        scope,
        "affinity_of",
        lambda original, policy, providers, *rest: original(policy, providers[:2], *rest),
    )


@seeds("MEM-HINT-010")
def memory_is_aligned_under_every_policy(changes: Changes) -> None:
    """Counts memory by NUMA node without being asked."""

    def made(original: Any, config: Any, *rest: Any) -> Any:
        return original(replace(config, memory_policy="Static"), *rest)

    changes.around(startup, "make_memory_policy", made)
