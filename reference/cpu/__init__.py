"""The CPU Manager: which CPUs a container gets.

Read `topology` and `state`, then `assignment` (which CPUs), `policy` (who gets them), `hints`, and
`distribution` for the option ``distribute-cpus-across-numa``.
"""
