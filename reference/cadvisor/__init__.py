"""Discovery: a ``/sys`` and ``/proc`` tree becomes cAdvisor's `MachineInfo`."""
