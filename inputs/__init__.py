"""What users and their programs name is read here and nowhere else.

A file comes through `numaproof.inputs.door`, with limits on its kind, its size and what it unpacks
to; YAML and JSON go on to `numaproof.inputs.documents`, with limits on depth, values and aliases.
`tests/inputs/test_one_door.py` finds who opens a file without them.
"""
