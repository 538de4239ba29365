"""The formats in which operators describe a machine: one module for each.

`reading.read` is the entry point. A format's module turns a text into a `Description`: what the
text says, and nothing else. `assembly` adds what it doesn't say, and names each addition as a
`Gap`.
"""
