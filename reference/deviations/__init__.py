"""Where kubelets deviate from the documents, manager by manager, and the table of releases.

Each deviation is a class that overrides a rule at one of its methods, beside what is known of it.
A release composes those that it has onto the rule: see `numaproof.reference.deviations.releases`.
"""
