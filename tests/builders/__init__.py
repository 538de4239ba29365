"""Builders of machines, pods, containers and devices for tests."""
