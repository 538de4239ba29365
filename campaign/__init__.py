"""A campaign over many workers: units of work, their findings, and a journal to resume from.

Only `numaproof.campaign.cluster` knows of Dask; everything else runs without it.
"""
