"""Run with `python3 -m unittest`; numaproof must be installed (requirements-conformance.txt)."""

import subprocess
import unittest

from adapter import choose_cpus

CORES = [{"core_id": one, "socket_id": 0, "thread_ids": [one, one + 4]} for one in range(4)]
MACHINE = {"topology": [{"node_id": 0, "cores": CORES}]}


class AdapterTest(unittest.TestCase):
    def test_choose_cpus_returns_the_requested_number_of_free_cpus(self):
        free = {1, 3, 5, 7}
        chosen = choose_cpus(2, free, MACHINE)
        self.assertEqual(len(chosen), 2)
        self.assertLessEqual(chosen, free)

    def test_adapter_speaks_the_protocol(self):
        subprocess.run(["numaproof", "doctor", "{{ skeleton.command }}"], check=True)
