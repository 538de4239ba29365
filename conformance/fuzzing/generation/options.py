"""The policy options that generated configurations treat with care, by name."""

from __future__ import annotations

FULL_CORES = "full-pcpus-only"
ACROSS_NUMA = "distribute-cpus-across-numa"
ACROSS_CORES = "distribute-cpus-across-cores"
BY_SOCKET = "align-by-socket"
BY_UNCORE = "prefer-align-cpus-by-uncorecache"
CLOSEST = "prefer-closest-numa-nodes"
MOST_NODES = "max-allowable-numa-nodes"
