"""Violators of the requirements of the Topology Manager's merge, continued: ties, single nodes."""

from __future__ import annotations

from numaproof.reference.topology.hints import ANYWHERE
from quality.seeding import Changes, SubjectBugs
from quality.violators.topology_merging.merging import (
    hearing,
)

seeds = SubjectBugs("topology-merging")


# Ties, and results that are not preferred


# Resources of one provider


# What single-numa-node counts


# Hints that name no nodes


@seeds("TOPO-MERGE-013")
def a_hint_without_nodes_does_no_harm_to_the_preference(changes: Changes) -> None:
    """An author skips hints without nodes, preferred or not."""
    hearing(
        changes,
        lambda _, hint: hint._replace(preferred=True) if hint.nodes == ANYWHERE else hint,
    )


# Ids of nodes
