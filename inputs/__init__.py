"""Reads all files that are named by users or their programs.

Files go through `numaproof.inputs.door`, which restricts their kind, size and unpacked size. YAML
and JSON files then go through `numaproof.inputs.documents`, which limits depth, values and aliases.
`tests/inputs/test_one_door.py` finds code that opens files in other ways.
"""
