"""Where kubelets deviate from their documentation, by manager, and the table of releases.

Each deviation is a class that overrides a method of a rule and describes the deviation. A release
combines its deviations with the rule: see `numaproof.reference.deviations.releases`.
"""
