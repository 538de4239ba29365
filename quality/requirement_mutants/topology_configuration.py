"""Violators of options, limits and errors of the Topology Manager."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import NUMASet
from numaproof.reference import startup
from numaproof.reference.config import configuration, gates, validation
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.devices.hints import DeviceHints
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.errors import AdmissionError, StartError
from numaproof.reference.golang import numbers
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.topology import distances, options, scope
from numaproof.reference.topology import merge as merging
from numaproof.reference.topology import options as topology_options
from numaproof.reference.topology import policy as policies
from numaproof.reference.topology.distances import UNREACHABLE, Distances
from numaproof.reference.topology.policy import TopologyPolicy
from numaproof.reference.topology.search import evaluation
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numaproof.reference.topology.hints import TopologyHint
    from numaproof.reference.topology.merge import Rules

seeds = SubjectBugs("topology-configuration")


# Configuration


_POLICIES = (policies.NONE, policies.BEST_EFFORT, policies.RESTRICTED, policies.SINGLE_NUMA_NODE)


@shape(configuration, "load")
def _reading(
    change: Callable[[dict[str, Any]], dict[str, Any]], rule: Any, kubelet_config: Any
) -> Any:
    """Lets the configuration be read as `change` says."""
    return rule(kubelet_config=change(dict(kubelet_config)))


# Rejected pods


@shape(scope, "affinity_of")
def _rejecting(change: Change, rule: Any, policy: Any, pod: Any, container: Any) -> Any:
    """Lets `change` say the reason and the message of a pod rejected for its affinity."""
    try:
        return rule()
    except AdmissionError as error:
        changed = change(error, policy, pod, container)
        if changed is None:
            raise
        raise AdmissionError(*changed) from None


@seeds("TOPO-ERROR-001").by(_rejecting)
def init_containers_without_affinity_are_unexpected(
    error: Any, policy: Any, pod: Any, container: Any
) -> Any:
    """Rejects init containers by the general reason, as if an allocation had failed."""
    if container is not None and container.init:
        return ("UnexpectedAdmissionError", str(error))
    return None


@seeds("TOPO-ERROR-001").by(_rejecting)
def pods_with_resources_of_their_own_are_rejected_in_the_same_words(
    error: Any, policy: Any, pod: Any, container: Any
) -> Any:
    """Has one message for containers and for pods, with resources of their own or not."""
    if pod.budget is not None:
        return (error.reason, "Resources cannot be allocated with Topology locality")
    return None


def _failing(changes: Changes, manager: type[Any], change: Callable[[Any], Any]) -> None:
    """Lets a manager's failure under best-effort have the reason that `change` gives it."""
    current = changes.record_argument(scope, "admit", "policy")

    def allocate(rule: Any) -> None:
        try:
            rule()
        except AdmissionError as error:
            best_effort = current and current[-1] and current[-1].name == policies.BEST_EFFORT
            if not best_effort or error.reason != "UnexpectedAdmissionError":
                raise
            raise change(error) from None

    for name in ("allocate", "allocate_pod"):
        changes.around(manager, name, allocate)


@seeds("TOPO-ERROR-012").by(_failing, CPUManager)
def too_few_cpus_are_an_affinity_error_under_best_effort(error: Any) -> Any:
    """Blames the Topology Manager for whatever it let pass."""
    return AdmissionError("TopologyAffinityError", str(error))


@seeds("TOPO-ERROR-012").by(_failing, MemoryManager)
def too_little_memory_is_out_of_memory_under_best_effort(error: Any) -> Any:
    """Names the resource in the reason, as the scheduler's check on the node does."""
    return AdmissionError("OutOfmemory", str(error))


@seeds("TOPO-ERROR-012").by(_failing, DeviceManager)
def too_few_devices_are_out_of_devices_under_best_effort(error: Any) -> Any:
    """Has a reason of its own for device plugins."""
    return AdmissionError("OutOfdevices", str(error))


@seeds("TOPO-ERROR-012")
def the_message_of_the_failed_manager_is_lost(changes: Changes) -> None:
    """Keeps the reason under best-effort, and puts a sentence of its own behind it."""
    for manager in (CPUManager, DeviceManager, MemoryManager):
        _failing(
            changes,
            manager,
            lambda error: AdmissionError(error.reason, "Allocate failed, which is unexpected"),
        )


# Policies and scopes


def _scoping(changes: Changes, lenient: tuple[str, ...]) -> None:
    """Lets any scope stand for container under these policies."""

    def drop_unknown_scope(kubelet_config: dict[str, Any]) -> dict[str, Any]:
        value = kubelet_config.get("topologyManagerScope")
        policy = kubelet_config.get("topologyManagerPolicy") or policies.NONE
        if isinstance(value, str) and value not in ("container", "pod") and policy in lenient:
            del kubelet_config["topologyManagerScope"]
        return kubelet_config

    _reading(changes, drop_unknown_scope)


@seeds("TOPO-ERROR-003").of(_scoping, (policies.BEST_EFFORT,))
def best_effort_takes_any_scope() -> None:
    """Checks the scope where a pod may be rejected."""


@seeds("TOPO-ERROR-002")
def policies_are_known_by_how_they_begin(changes: Changes) -> None:
    """Looks for the beginning of a name, as command lines let one shorten it."""

    def problems(rule: Any, policy: str) -> Any:
        whole = [one for one in _POLICIES if policy and one.startswith(policy)]
        return rule(policy=whole[0] if len(whole) == 1 else policy)

    def load(config: Any) -> Any:
        whole = [one for one in _POLICIES if one.startswith(config.topology_policy)]
        return replace(config, topology_policy=whole[0])

    changes.around(validation, "topology_problems", problems)
    changes.after(configuration, "load", load)


# Options


@shape(topology_options, "parse")
def _pass_over_options(over: Change, rule: Any, policy_options: Any, available: Any) -> Any:
    """Lets unknown options be passed over for which `over` is true."""
    known = {
        name: value
        for name, value in policy_options.items()
        if name in available or not over(name, dict(policy_options), available)
    }
    return rule(policy_options=known)


@seeds("TOPO-ERROR-004").of(
    _pass_over_options, lambda name, policy_options, available: policy_options[name] == "false"
)
def unknown_options_that_are_off_are_passed_over() -> None:
    """Looks only at options that are turned on."""


@seeds("TOPO-ERROR-004").by(_pass_over_options)
def unknown_options_are_passed_over_beside_known_ones(
    name: Any, policy_options: Any, available: Any
) -> Any:
    """Stops at the first option that is known."""
    return any(one in available for one in policy_options)


@shape(startup, "make_topology_policy", Changes.after)
def _check_under_none(
    check: Callable[[Any, Any], None], topology_policy: Any, config: Any, release: Any
) -> Any:
    """Lets `check` look at the options under policy none, too."""
    if config.topology_policy == policies.NONE:
        try:
            check(config, release)
        except OptionError as error:
            raise StartError("topology", str(error)) from None
    return topology_policy


@seeds("TOPO-ERROR-005").by(_check_under_none)
def the_none_policy_checks_the_gates_of_options(config: Any, release: Any) -> None:
    """Looks at feature gates first, whatever the policy."""
    for name in sorted(config.topology_options or {}):
        if name in release.topology_options:
            topology_options.check_available(name, release.topology_options, config.gates)


# Options


_GATE = "TopologyManagerPolicyOptions"
_LEAST = topology_options.DEFAULT_MAX_ALLOWABLE_NUMA_NODES


# How many nodes


@shape(topology_options, "read_most_nodes")
def _taking(most: Callable[[str], int | None], rule: Any, text: str) -> Any:
    """Lets `most` read a number of nodes that is refused; None leaves it refused."""
    try:
        return rule()
    except OptionError:
        found = most(text)
        if found is None:
            raise
        return found


def _number(text: str) -> int | None:
    try:
        return numbers.parse_signed(text)
    except numbers.NumeralError:
        return None


@seeds("TOPO-ERROR-007").of(_taking, lambda text: 1 << 62 if _number(text) == 0 else None)
def zero_lifts_the_limit_of_numa_nodes() -> None:
    """Takes 0 for "no limit"."""


@seeds("TOPO-ERROR-007").of(_taking, lambda text: _LEAST if (_number(text) or 0) < 0 else None)
def negative_numbers_of_numa_nodes_are_passed_over() -> None:
    """Compares the least number with a positive one only."""


# Feature gates


@seeds("TOPO-ERROR-009").around(gates, "enabled_gates")
def the_gate_of_options_can_still_be_turned_off(
    rule: Any, decoded_config: Any, known_gates: Any
) -> Any:
    """Overlooks that the gate is locked since 1.36."""
    wanted = decoded_config.get("featureGates") or {}
    locked = isinstance(wanted, dict) and known_gates.get(_GATE) and known_gates[_GATE].is_locked
    if not locked or wanted.get(_GATE) is not False:
        return rule()
    others = {name: on for name, on in wanted.items() if name != _GATE}
    return {**rule(decoded_config={**decoded_config, "featureGates": others}), _GATE: False}


# Distances


@seeds("TOPO-ERROR-011").around(policies, "of_nodes")
def one_node_with_distances_is_enough(rule: Any, name: str, rows: Any) -> Any:
    """Refuses machines that report no distances at all."""
    if any(row is not None for row in rows.values()):
        rows = {node: () if row is None else row for node, row in rows.items()}
    return rule(rows=rows)


# Distances


MAX_NODES = options.DEFAULT_MAX_ALLOWABLE_NUMA_NODES
# Distances that count, and that do not


def with_distances(policy: TopologyPolicy, node_distances: Distances | None) -> TopologyPolicy:
    return replace(policy, rules=replace(policy.rules, distances=node_distances))


def _always(changes: Changes, when: Callable[[TopologyPolicy], bool]) -> None:
    """Compares distances without being asked, if the machine tells them and `when` says so."""

    def change(policy: TopologyPolicy, rows: Any) -> TopologyPolicy:
        told = len(rows) > 1 and all(row is not None for row in rows.values())
        if policy.rules.single or policy.rules.distances or not told or not when(policy):
            return policy
        return with_distances(policy, Distances(dict(rows)))

    changes.after(policies, "of_nodes", change)


@seeds("TOPO-OPT-002").of(_always, lambda policy: policy.name == "restricted")
def restricted_always_compares_distances() -> None:
    """Takes the closest nodes for what restricted is about."""


# The limit of NUMA nodes


@shape(policies, "on_machine")
def _limit(most: Change, rule: Any, name: str, options: Any, machine: Any) -> Any:
    """Allows another number of nodes; `most` makes it of policy, options and machine."""
    allowed = replace(options, most_nodes=most(name, options, machine))
    return rule(options=allowed)


@seeds("TOPO-OPT-003").by(_limit)
def ninth_node_is_allowed(name: str, parsed_options: Any, machine: Any) -> Any:
    """Refuses more nodes than node number 8."""
    return parsed_options.most_nodes + (parsed_options.most_nodes == MAX_NODES)


@seeds("TOPO-OPT-003").by(_limit)
def nodes_without_cpus_do_not_count(_name: str, parsed_options: Any, machine: Any) -> int:
    """Counts the nodes of CPUs."""
    empty = sum(1 for node in machine.topology or () if not node.cores)
    return int(parsed_options.most_nodes) + (parsed_options.most_nodes == MAX_NODES and empty)


@seeds("TOPO-OPT-004").by(_limit)
def limit_is_raised_to_twice_the_default_at_most(
    name: str, parsed_options: Any, machine: Any
) -> Any:
    """Caps what takes too long."""
    return min(parsed_options.most_nodes, 2 * MAX_NODES)


# What distances may decide


@shape(evaluation, "merge")
def _compare_by(key: Change, rule: Any, rules: Rules, providers: Sequence[Any]) -> TopologyHint:
    """Chooses among all results by another order, where distances count and nodes are few."""
    if rules.distances is None or rules.nodes.bit_count() > MAX_NODES:
        return rule()  # type: ignore[no-any-return]
    lists = [
        rules.filter_hints(evaluation.list_hints(hints) or merging.IMPOSSIBLE)
        for hints in merging.by_resource(providers)
    ]
    target = rules.target(lists)
    found = merging.results(rules, lists)
    if not found:
        return rule()  # type: ignore[no-any-return]
    return min(found, key=lambda result: (key(rules, result, target), result.nodes))


def _distance(rules: Rules, result: TopologyHint) -> float:
    return distances.average(result.nodes, rules.distances.table) if rules.distances else 0


@seeds("TOPO-OPT-005").by(_compare_by)
def closer_affinity_beats_one_of_the_right_size(rules: Rules, result: Any, target: int) -> Any:
    """Compares distances between all affinities that are not preferred."""
    if result.preferred:
        return rules.rank(result, target)
    return (1, _distance(rules, result), rules.rank(result, target))


# Ties


def _break_ties(changes: Changes, place: Callable[[int], Any]) -> None:
    """Decides by `place` between sets that are equally close."""

    def by_average(sets: Collection[int], table: Any) -> list[int]:
        return sorted(sets, key=lambda nodes: (distances.average(nodes, table), place(nodes)))

    changes.replace(distances, "by_average", by_average)
    changes.replace(Distances, "by_table_alone", property(lambda self: False))


@seeds("TOPO-OPT-006").of(_break_ties, lambda nodes: tuple(NUMASet.from_mask(nodes)))
def equally_close_affinity_with_the_lowest_node_wins() -> None:
    """Compares lists of nodes, where [0, 3] comes before [1, 2]."""


@seeds("TOPO-OPT-006").of(_break_ties, lambda nodes: -nodes)
def last_of_equally_close_affinities_wins() -> None:
    """Keeps an affinity that is no farther than the best."""


# The distance of an affinity


def _change_average(changes: Changes, measure: Callable[[tuple[int, ...], Any], float]) -> None:
    """Measures the distance of a set of nodes otherwise."""

    def average(nodes: int, table: Any) -> float:
        return measure(tuple(NUMASet.from_mask(nodes)), table)

    changes.replace(distances, "average", average)


@seeds("TOPO-OPT-007").by(_change_average)
def distance_is_that_of_the_farthest_nodes(nodes: tuple[int, ...], table: Any) -> Any:
    """Takes the largest distance between two nodes."""
    return max(table[one][other] for one in nodes for other in nodes)


@seeds("TOPO-OPT-007").by(_change_average)
def distance_is_a_whole_number(nodes: tuple[int, ...], table: Any) -> Any:
    """Divides integers."""
    return sum(table[one][other] for one in nodes for other in nodes) // len(nodes) ** 2


@seeds("TOPO-OPT-007").by(_change_average)
def distance_is_measured_from_the_first_node(nodes: tuple[int, ...], table: Any) -> Any:
    """Reads the row of one node."""
    return sum(table[nodes[0]][other] for other in nodes) / len(nodes)


@seeds("TOPO-OPT-007").by(_change_average)
def distance_is_measured_in_one_direction(nodes: tuple[int, ...], table: Any) -> Any:
    """Counts each pair once, and takes tables for symmetric."""
    return sum(table[one][other] for one in nodes for other in nodes if one <= other)


@seeds("TOPO-OPT-007").by(_change_average)
def distance_leaves_nodes_themselves_out(nodes: tuple[int, ...], table: Any) -> Any:
    """Averages over different nodes, at the same distance from themselves."""
    return sum(table[one][other] for one in nodes for other in nodes if one != other)


# Policies without sets of nodes


class MostCentral(Distances):
    """Nodes by their distances to all nodes of the machine."""

    @property
    def by_table_alone(self) -> bool:
        """Not at all: nodes outside of a set count."""
        return False

    def sort_sets(self, sets: Collection[int]) -> list[int]:
        """The most central first, then low ids."""
        table = self.table

        def total(nodes: int) -> int:
            return sum(sum(table[node].values()) for node in NUMASet.from_mask(nodes))

        return sorted(sets, key=lambda nodes: (total(nodes), nodes))


@shape(policies, "of_nodes", Changes.after)
def _single(
    kind: type[Distances], policy: TopologyPolicy, options: Any, rows: Any
) -> TopologyPolicy:
    """Has single-numa-node compare distances of a kind, where the option is on."""
    if not options.closest or not policy.rules.single:
        return policy
    return with_distances(policy, kind(dict(rows)))


@seeds("TOPO-OPT-008").of(_single, MostCentral)
def single_numa_node_takes_the_most_central_node() -> None:
    """Finds a use for distances: the node that is closest to all others."""


# Node ids with gaps


@seeds("TOPO-OPT-009").after(policies, "of_nodes")
def distances_do_not_count_where_node_ids_have_gaps(policy: Any, rows: Any) -> TopologyPolicy:
    """Gives up where ids are no positions."""
    gaps = sorted(rows) != [*range(len(rows))]
    return with_distances(policy, None) if gaps else policy


@seeds("TOPO-OPT-009")
def nodes_beyond_their_number_are_unreachable(changes: Changes) -> None:
    """Reads a row of distances at the id of the node."""

    def table(self: Distances) -> Any:
        return {
            node: {
                other: row[other] if other < len(row) else UNREACHABLE
                for other in sorted(self.rows)
            }
            for node, row in self.rows.items()
        }

    changes.replace(Distances, "table", property(table))
    changes.replace(Distances, "by_table_alone", property(lambda self: False))


# Policy none


@seeds("TOPO-OPT-010").after(startup, "make_topology_policy")
def policy_none_ends_where_a_mask_of_nodes_does(
    topology_policy: Any, config: Any, machine: Any
) -> Any:
    """Keeps nodes in half a machine word."""
    if topology_policy is None and len(machine.topology or ()) > 4 * MAX_NODES:
        raise StartError(
            "topology", f"unsupported on machines with more than {4 * MAX_NODES} NUMA Nodes"
        )
    return topology_policy


# Many nodes


@seeds("TOPO-OPT-011").around(DeviceHints, "of_resource")
def devices_have_no_hints_on_many_nodes(rule: Any, self: DeviceHints) -> Any:
    """Does not enumerate sets of many nodes."""
    return None if len(self.nodes) > MAX_NODES else rule()


@seeds("TOPO-OPT-011").around(DeviceHints, "candidate_nodes")
def devices_are_found_on_the_first_nodes_alone(rule: Any, self: DeviceHints) -> Any:
    """Looks at the sets of eight nodes, and not beyond."""
    first = sorted(self.nodes)[:MAX_NODES]
    return tuple(node for node in rule() if node in first)


@seeds("TOPO-OPT-012").around(TopologyPolicy, "merge")
def four_resources_on_eight_nodes_are_refused(rule: Any, self: Any, providers: Any) -> Any:
    """Bounds the combinations of hints, and admits none beyond the bound."""
    kept, admitted = rule()
    hinted = [one for one in merging.by_resource(providers) if one != merging.NO_PREFERENCE]
    many = self.rules.nodes.bit_count() >= MAX_NODES and len(hinted) >= MAX_NODES // 2
    return kept, admitted and not many
