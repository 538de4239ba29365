"""Where kubelets deviate from their documentation, manager by manager, and the release table.

Each deviation is a class that overrides a method of a rule, together with its description. A
release combines its deviations with the rule: see `numaproof.reference.deviations.releases`.
"""
