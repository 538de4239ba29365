"""Pods as the managers see them: containers, QoS classes, quantities and pod-level resources."""
