"""Pods as the managers read them: containers, QoS classes, quantities and budgets."""
