"""Campaigns over many workers: units of work, their findings, and a journal for resuming.

Only `numaproof.campaign.cluster` depends on Dask.
"""
