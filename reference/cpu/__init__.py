"""The CPU Manager assigns CPUs to containers.

Read `topology` and `state`, then `assignment` (which CPUs), `policy` (which containers), `hints`
and, for ``distribute-cpus-across-numa``, `distribution`.
"""
