"""The Device Manager: devices by resource, topology hints, and allocation to containers."""
