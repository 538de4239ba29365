"""The CPU Manager: policies, options, assignment, hints and its checkpoint."""
