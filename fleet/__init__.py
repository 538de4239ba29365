"""A campaign over many workers: units of work, what they find, and a file that can be gone on with.

Only `numaproof.fleet.cluster` knows of Dask; everything else runs without it.
"""
