"""Policies and their options: what is refused with which text, and what is admitted."""

from __future__ import annotations

from typing import Any

import pytest

from numaproof.protocol import codec, messages
from numaproof.protocol.machine import MachineInfo, Node
from numaproof.reference.config import configuration
from numaproof.reference.config.options import OptionError
from numaproof.reference.deviations import releases
from numaproof.reference.implementation import Reference
from numaproof.reference.topology import options, policy
from numaproof.reference.topology.distances import Distances


def ask(**args: Any) -> Any:
    given = {"nodes": [0, 1], "policy": "restricted", "providers": [], **args}
    return Reference().call("merge", codec.from_plain(given, messages.MergeArgs))


def make(
    machine: MachineInfo, release: str = "1.35", name: str = "best-effort", **fields: Any
) -> policy.TopologyPolicy:
    found = releases.release(release)
    given = {"topologyManagerPolicy": name, **fields}
    config = configuration.load(given, found.enabled)
    chosen = options.parse(config.topology_options or {}, found.topology_options, config.gates)
    return policy.on_machine(name, chosen, machine, found.rule(Distances))


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("x", "1", 'unknown Topology Manager Policy option: "x"'),
        (
            "prefer-closest-numa-nodes",
            "maybe",
            (
                'bad value for option "prefer-closest-numa-nodes": strconv.ParseBool: '
                'parsing "maybe": invalid syntax'
            ),
        ),
        (
            "max-allowable-numa-nodes",
            "0_9",
            (
                'unable to convert policy option to integer "max-allowable-numa-nodes": '
                'strconv.Atoi: parsing "0_9": invalid syntax'
            ),
        ),
        (
            "max-allowable-numa-nodes",
            "99999999999999999999",
            (
                'unable to convert policy option to integer "max-allowable-numa-nodes": '
                'strconv.Atoi: parsing "99999999999999999999": value out of range'
            ),
        ),
        (
            "max-allowable-numa-nodes",
            "7",
            'the minimum value of "max-allowable-numa-nodes" should not be less than 8',
        ),
        ("prefer-closest-numa-nodes", "true", "error getting NUMA distances from cadvisor"),
    ],
)
def test_bad_options_are_refused_with_the_kubelets_text(option: str, value: str, text: str) -> None:
    assert ask(options={option: value}) == messages.StartRefused("topology", text)


@pytest.mark.parametrize("args", [{"policy": "some"}, {"nodes": [0, 64]}, {"nodes": [-1]}])
def test_policies_and_nodes_that_cannot_be_are_faults(args: dict[str, Any]) -> None:
    assert isinstance(ask(**args), messages.Fault)


def test_options_need_their_feature_gate() -> None:
    options.check_gate(None, {"TopologyManagerPolicyOptions": False})
    options.check_gate({"b": "2"}, {"TopologyManagerPolicyOptions": True})
    with pytest.raises(OptionError, match=r"options map\[\] require feature gates"):
        options.check_gate({}, {"TopologyManagerPolicyOptions": False})
    with pytest.raises(OptionError) as raised:
        options.check_gate({"b": "2", "a": "1"}, {"TopologyManagerPolicyOptions": False})
    assert str(raised.value) == (
        "topology manager policy options map[a:1 b:2] require feature gates "
        '"TopologyManagerPolicyOptions" enabled'
    )


def test_a_node_with_a_negative_id_keeps_no_policy_from_being_made() -> None:
    nodes = MachineInfo(topology=(Node(-1), Node(0)))
    made = make(nodes)
    assert made.negative
