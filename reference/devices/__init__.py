"""The Device Manager: devices by resource, their hints, and their allocation to containers."""
