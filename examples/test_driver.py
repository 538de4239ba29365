"""Tests that the driver's project might have (see docs/fuzzing.md)."""

import pytest
from driver import Driver, parse_cpus
from hypothesis import given, settings
from hypothesis import strategies as st

from numaproof.conformance.cases.manifests import manifest
from numaproof.conformance.fuzzing import strategies
from numaproof.protocol.codec import to_plain


@pytest.mark.numaproof(select="remove-*")
def test_documented_behaviour(numaproof, numaproof_case):
    numaproof.check(numaproof_case)


@pytest.mark.numaproof(cases="numaproof-cases.yaml")
def test_fixed_bugs_stay_fixed(numaproof, numaproof_case):
    numaproof.check(numaproof_case)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_any_node_lifetime(numaproof, data):
    numaproof.play(data.draw(numaproof.scenarios()))


@settings(deadline=None)
@given(machine=strategies.machines(most_nodes=2), data=st.data())
def test_reserved_cpus_are_never_exclusive(machine, data):
    config = data.draw(strategies.kubelet_configurations(machine))
    pod = data.draw(strategies.pods(machine, "web"))
    driver = Driver()
    start = {"machine": to_plain(machine), "config": config, "state_dir": "nowhere"}
    if "ok" not in driver.start(start):
        return
    answer = driver.admit({"pod": manifest(pod)})
    for container in answer.get("ok", {}).get("containers", {}).values():
        assert parse_cpus(container["exclusive"]) <= driver.allocatable
