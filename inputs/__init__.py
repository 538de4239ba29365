"""Reads all files that users and their programs name.

Files go through `numaproof.inputs.door`, which limits their kind, size and unpacked size. YAML and
JSON continue to `numaproof.inputs.documents`, which limits depth, values and aliases.
`tests/inputs/test_one_door.py` finds code that opens files in other ways.
"""
