"""Policies and their options: what is refused with which text, and what is admitted."""

from __future__ import annotations

from typing import Any

import pytest

from builders.machines import bare as machine
from numaproof.protocol import codec, messages
from numaproof.protocol.machine import MachineInfo, Node
from numaproof.protocol.releases import RELEASES
from numaproof.reference.config import configuration
from numaproof.reference.config.options import OptionError
from numaproof.reference.deviations import releases
from numaproof.reference.implementation import Reference
from numaproof.reference.topology import options, policy
from numaproof.reference.topology.distances import Distances
from numaproof.reference.topology.hints import ANYWHERE, TopologyHint


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


def test_policy_none_admits_without_affinity_and_reads_no_options() -> None:
    answer = ask(policy="none", options={"x": "1"}, providers=[{"cpu": []}])
    assert answer == messages.Merged(messages.Hint(None, preferred=False), admit=True)


@pytest.mark.parametrize("args", [{"policy": "some"}, {"nodes": [0, 64]}, {"nodes": [-1]}])
def test_policies_and_nodes_that_cannot_be_are_faults(args: dict[str, Any]) -> None:
    assert isinstance(ask(**args), messages.Fault)


@pytest.mark.parametrize(
    ("name", "admits"),
    [("best-effort", True), ("restricted", False), ("single-numa-node", False)],
)
def test_only_best_effort_admits_what_is_not_preferred(name: str, *, admits: bool) -> None:
    made = make(machine(2), name=name)
    assert made.merge([{"cpu": (TopologyHint(0b01, preferred=False),)}])[1] is admits


def test_all_nodes_are_no_affinity_to_single_numa_node() -> None:
    made = make(machine(1), name="single-numa-node")
    assert made.merge([{"cpu": (TopologyHint(1, preferred=True),)}]) == (
        TopologyHint(ANYWHERE, preferred=True),
        True,
    )


def test_the_limit_of_nodes_is_eight_unless_an_option_raises_it() -> None:
    more = {"max-allowable-numa-nodes": "9"}
    assert make(machine(8)).name == "best-effort"
    assert make(machine(9), topologyManagerPolicyOptions=more).name == "best-effort"
    with pytest.raises(policy.TopologyManagerError) as raised:
        make(machine(9))
    assert str(raised.value) == "unsupported on machines with more than 8 NUMA Nodes"


@pytest.mark.parametrize("release", RELEASES)
def test_the_closest_nodes_need_distances_in_every_release(release: str) -> None:
    closest = {"prefer-closest-numa-nodes": "true"}
    with pytest.raises(policy.TopologyManagerError) as raised:
        make(machine(2, distances=False), release, topologyManagerPolicyOptions=closest)
    assert str(raised.value) == (
        "cannot discover NUMA topology: error getting NUMA distances from cadvisor"
    )


@pytest.mark.parametrize(("release", "open_"), [("1.33", False), ("1.34", False), ("1.35", True)])
def test_the_limit_of_nodes_is_an_option_in_beta_until_1_34(release: str, *, open_: bool) -> None:
    fields: dict[str, Any] = {
        "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "9"},
        "featureGates": {"TopologyManagerPolicyBetaOptions": False},
    }
    if open_:
        assert make(machine(9), release, **fields).name == "best-effort"
        return
    with pytest.raises(OptionError) as raised:
        make(machine(9), release, **fields)
    assert str(raised.value) == (
        "topology manager policy beta-level options not enabled, but option "
        '"max-allowable-numa-nodes" provided'
    )


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


def test_distances_go_by_the_order_of_ids_where_ids_have_gaps() -> None:
    rows = {"0": [10, 30, 20], "5": [30, 10, 12], "9": [20, 12]}
    pairs = [{"numa": pair, "preferred": True} for pair in ([0, 5], [0, 9], [5, 9])]
    answer = ask(
        nodes=[0, 5, 9],
        options={"prefer-closest-numa-nodes": "true"},
        distances={**rows, "9": [20, 12, 10]},
        providers=[{"cpu": pairs}],
    )
    assert tuple(answer.hint.numa) == (5, 9)
    # A distance that is not given is that of nodes out of reach.
    short = ask(
        nodes=[0, 5, 9],
        options={"prefer-closest-numa-nodes": "true"},
        distances=rows,
        providers=[{"cpu": pairs}],
    )
    assert tuple(short.hint.numa) == (0, 5)


GAPPED = {"1": [10, 40, 20], "2": [40, 10, 30], "3": [20, 30, 10]}


def test_where_a_kubelet_panics_on_gaps_the_distances_are_the_true_ones() -> None:
    pairs = [{"numa": pair, "preferred": True} for pair in ([1, 2], [1, 3])]
    answer = ask(
        nodes=[1, 2, 3],
        options={"prefer-closest-numa-nodes": "true"},
        distances=GAPPED,
        providers=[{"cpu": pairs}],
    )
    assert tuple(answer.hint.numa) == (1, 3)


@pytest.mark.parametrize("preferred", [True, False])
def test_with_ids_taken_for_places_other_nodes_look_closest(*, preferred: bool) -> None:
    distances = {
        "0": [10, 20, 11, 31, 30],
        "1": [20, 10, 30, 11, 30],
        "3": [11, 30, 10, 20, 30],
        "4": [30, 11, 20, 10, 30],
        "6": [30, 30, 30, 30, 10],
    }
    given = {
        "nodes": [0, 1, 3, 4, 6],
        "policy": "best-effort",
        "options": {"prefer-closest-numa-nodes": "true"},
        "distances": distances,
        "providers": [
            {"cpu": [{"numa": pair, "preferred": preferred} for pair in ([0, 3], [1, 3])]}
        ],
    }
    found = []
    for made in (Reference(), Reference(documented=True)):
        answer = made.call("merge", codec.from_plain(given, messages.MergeArgs))
        assert isinstance(answer, messages.Merged)
        found.append(list(answer.hint.numa or ()))
    assert found == [[1, 3], [0, 3]]


def test_a_node_with_a_negative_id_keeps_no_policy_from_being_made() -> None:
    nodes = MachineInfo(topology=(Node(-1), Node(0)))
    made = make(nodes)
    assert made.negative
