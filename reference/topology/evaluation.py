"""How the reference evaluates hints: this is where the fast way is chosen.

`numaproof.reference.topology.hints` and `numaproof.reference.topology.merge` define these
functions; `numaproof.reference.topology.search` gives the same answers, on machines of many NUMA
nodes too. Everything else in the reference calls them here, so naming the definitions in the
imports below makes all of it run by the definitions.
"""

from numaproof.reference.topology.search.enumeration import listed, narrowest, satisfiable
from numaproof.reference.topology.search.merge import merge

__all__ = ["listed", "merge", "narrowest", "satisfiable"]
