"""Mutants of the Topology Manager's options, limits and errors."""

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
    """Lets `change` replace the configuration."""
    return rule(kubelet_config=change(dict(kubelet_config)))


# Rejected pods


@shape(scope, "affinity_of")
def _rejecting(change: Change, rule: Any, policy: Any, pod: Any, container: Any) -> Any:
    """Lets `change` replace the reason and message of pods rejected for their affinity."""
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
    """Rejects init containers with UnexpectedAdmissionError."""
    if container is not None and container.init:
        return ("UnexpectedAdmissionError", str(error))
    return None


@seeds("TOPO-ERROR-001").by(_rejecting)
def pods_with_resources_of_their_own_are_rejected_in_the_same_words(
    error: Any, policy: Any, pod: Any, container: Any
) -> Any:
    """Rejects pods that have a budget with the message for containers."""
    if pod.budget is not None:
        return (error.reason, "Resources cannot be allocated with Topology locality")
    return None


def _failing(changes: Changes, manager: type[Any], change: Callable[[Any], Any]) -> None:
    """Lets `change` replace a manager's errors under the best-effort policy."""
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
    """Rejects pods with too few CPUs with TopologyAffinityError."""
    return AdmissionError("TopologyAffinityError", str(error))


@seeds("TOPO-ERROR-012").by(_failing, MemoryManager)
def too_little_memory_is_out_of_memory_under_best_effort(error: Any) -> Any:
    """Rejects pods with too little memory with OutOfmemory."""
    return AdmissionError("OutOfmemory", str(error))


@seeds("TOPO-ERROR-012").by(_failing, DeviceManager)
def too_few_devices_are_out_of_devices_under_best_effort(error: Any) -> Any:
    """Rejects pods with too few devices with OutOfdevices."""
    return AdmissionError("OutOfdevices", str(error))


@seeds("TOPO-ERROR-012")
def the_message_of_the_failed_manager_is_lost(changes: Changes) -> None:
    """Replaces the manager's message with a general one."""
    for manager in (CPUManager, DeviceManager, MemoryManager):
        _failing(
            changes,
            manager,
            lambda error: AdmissionError(error.reason, "Allocate failed, which is unexpected"),
        )


# Policies and scopes


def _scoping(changes: Changes, lenient: tuple[str, ...]) -> None:
    """Ignores unknown scopes under some policies."""

    def drop_unknown_scope(kubelet_config: dict[str, Any]) -> dict[str, Any]:
        value = kubelet_config.get("topologyManagerScope")
        policy = kubelet_config.get("topologyManagerPolicy") or policies.NONE
        if isinstance(value, str) and value not in ("container", "pod") and policy in lenient:
            del kubelet_config["topologyManagerScope"]
        return kubelet_config

    _reading(changes, drop_unknown_scope)


@seeds("TOPO-ERROR-003").of(_scoping, (policies.BEST_EFFORT,))
def best_effort_takes_any_scope() -> None:
    """Ignores unknown scopes under the best-effort policy."""


@seeds("TOPO-ERROR-002")
def policies_are_known_by_how_they_begin(changes: Changes) -> None:
    """Accepts abbreviated policies."""

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
    """Ignores unknown options for which `over` is true."""
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
    """Ignores unknown options set to false."""


@seeds("TOPO-ERROR-004").by(_pass_over_options)
def unknown_options_are_passed_over_beside_known_ones(
    name: Any, policy_options: Any, available: Any
) -> Any:
    """Ignores unknown options if any other option is known."""
    return any(one in available for one in policy_options)


@shape(startup, "make_topology_policy", Changes.after)
def _check_under_none(
    check: Callable[[Any, Any], None], topology_policy: Any, config: Any, release: Any
) -> Any:
    """Also calls `check` for options under the none policy."""
    if config.topology_policy == policies.NONE:
        try:
            check(config, release)
        except OptionError as error:
            raise StartError("topology", str(error)) from None
    return topology_policy


@seeds("TOPO-ERROR-005").by(_check_under_none)
def the_none_policy_checks_the_gates_of_options(config: Any, release: Any) -> None:
    """Checks the gates of options under the none policy."""
    for name in sorted(config.topology_options or {}):
        if name in release.topology_options:
            topology_options.check_available(name, release.topology_options, config.gates)


# Options


_GATE = "TopologyManagerPolicyOptions"
_LEAST = topology_options.DEFAULT_MAX_ALLOWABLE_NUMA_NODES


# The limit of NUMA nodes


@shape(topology_options, "read_most_nodes")
def _taking(most: Callable[[str], int | None], rule: Any, text: str) -> Any:
    """Lets `most` read a refused limit; None keeps it refused."""
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
    """Treats a limit of 0 as no limit."""


@seeds("TOPO-ERROR-007").of(_taking, lambda text: _LEAST if (_number(text) or 0) < 0 else None)
def negative_numbers_of_numa_nodes_are_passed_over() -> None:
    """Ignores negative limits."""


# Feature gates


@seeds("TOPO-ERROR-009").around(gates, "enabled_gates")
def the_gate_of_options_can_still_be_turned_off(
    rule: Any, decoded_config: Any, known_gates: Any
) -> Any:
    """Lets a locked gate be turned off."""
    wanted = decoded_config.get("featureGates") or {}
    locked = isinstance(wanted, dict) and known_gates.get(_GATE) and known_gates[_GATE].is_locked
    if not locked or wanted.get(_GATE) is not False:
        return rule()
    others = {name: on for name, on in wanted.items() if name != _GATE}
    return {**rule(decoded_config={**decoded_config, "featureGates": others}), _GATE: False}


# Missing distances


@seeds("TOPO-ERROR-011").around(policies, "of_nodes")
def one_node_with_distances_is_enough(rule: Any, name: str, rows: Any) -> Any:
    """Refuses to start only if all nodes lack distances."""
    if any(row is not None for row in rows.values()):
        rows = {node: () if row is None else row for node, row in rows.items()}
    return rule(rows=rows)


# Distances


MAX_NODES = options.DEFAULT_MAX_ALLOWABLE_NUMA_NODES
# When distances count


def with_distances(policy: TopologyPolicy, node_distances: Distances | None) -> TopologyPolicy:
    return replace(policy, rules=replace(policy.rules, distances=node_distances))


def _always(changes: Changes, when: Callable[[TopologyPolicy], bool]) -> None:
    """Compares distances without the option if `when` is true and the machine has distances."""

    def change(policy: TopologyPolicy, rows: Any) -> TopologyPolicy:
        told = len(rows) > 1 and all(row is not None for row in rows.values())
        if policy.rules.single or policy.rules.distances or not told or not when(policy):
            return policy
        return with_distances(policy, Distances(dict(rows)))

    changes.after(policies, "of_nodes", change)


@seeds("TOPO-OPT-002").of(_always, lambda policy: policy.name == "restricted")
def restricted_always_compares_distances() -> None:
    """Always compares distances under the restricted policy."""


# The limit of NUMA nodes


@shape(policies, "on_machine")
def _limit(most: Change, rule: Any, name: str, options: Any, machine: Any) -> Any:
    """Lets `most` override the limit, given the policy, options and machine."""
    allowed = replace(options, most_nodes=most(name, options, machine))
    return rule(options=allowed)


@seeds("TOPO-OPT-003").by(_limit)
def ninth_node_is_allowed(name: str, parsed_options: Any, machine: Any) -> Any:
    """Allows one more node than the default limit."""
    return parsed_options.most_nodes + (parsed_options.most_nodes == MAX_NODES)


@seeds("TOPO-OPT-003").by(_limit)
def nodes_without_cpus_do_not_count(_name: str, parsed_options: Any, machine: Any) -> int:
    """Ignores nodes without CPUs in the default limit."""
    empty = sum(1 for node in machine.topology or () if not node.cores)
    return int(parsed_options.most_nodes) + (parsed_options.most_nodes == MAX_NODES and empty)


@seeds("TOPO-OPT-004").by(_limit)
def limit_is_raised_to_twice_the_default_at_most(
    name: str, parsed_options: Any, machine: Any
) -> Any:
    """Caps the limit at twice the default."""
    return min(parsed_options.most_nodes, 2 * MAX_NODES)


# What distances decide


@shape(evaluation, "merge")
def _compare_by(key: Change, rule: Any, rules: Rules, providers: Sequence[Any]) -> TopologyHint:
    """Compares results by `key` if distances count."""
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
    """Prefers the closest affinity to one of the right size."""
    if result.preferred:
        return rules.rank(result, target)
    return (1, _distance(rules, result), rules.rank(result, target))


# Ties


def _break_ties(changes: Changes, place: Callable[[int], Any]) -> None:
    """Breaks ties between equally close sets by `place`."""

    def by_average(sets: Collection[int], table: Any) -> list[int]:
        return sorted(sets, key=lambda nodes: (distances.average(nodes, table), place(nodes)))

    changes.replace(distances, "by_average", by_average)
    changes.replace(Distances, "by_table_alone", property(lambda self: False))


@seeds("TOPO-OPT-006").of(_break_ties, lambda nodes: tuple(NUMASet.from_mask(nodes)))
def equally_close_affinity_with_the_lowest_node_wins() -> None:
    """Prefers the equally close set with the lowest node."""


@seeds("TOPO-OPT-006").of(_break_ties, lambda nodes: -nodes)
def last_of_equally_close_affinities_wins() -> None:
    """Prefers the last of equally close sets."""


# The distance of an affinity


def _change_average(changes: Changes, measure: Callable[[tuple[int, ...], Any], float]) -> None:
    """Lets `measure` compute the distance of a set of nodes."""

    def average(nodes: int, table: Any) -> float:
        return measure(tuple(NUMASet.from_mask(nodes)), table)

    changes.replace(distances, "average", average)


@seeds("TOPO-OPT-007").by(_change_average)
def distance_is_that_of_the_farthest_nodes(nodes: tuple[int, ...], table: Any) -> Any:
    """Uses the largest distance between two nodes."""
    return max(table[one][other] for one in nodes for other in nodes)


@seeds("TOPO-OPT-007").by(_change_average)
def distance_is_a_whole_number(nodes: tuple[int, ...], table: Any) -> Any:
    """Rounds the average distance down."""
    return sum(table[one][other] for one in nodes for other in nodes) // len(nodes) ** 2


@seeds("TOPO-OPT-007").by(_change_average)
def distance_is_measured_from_the_first_node(nodes: tuple[int, ...], table: Any) -> Any:
    """Averages only the distances from the first node."""
    return sum(table[nodes[0]][other] for other in nodes) / len(nodes)


@seeds("TOPO-OPT-007").by(_change_average)
def distance_is_measured_in_one_direction(nodes: tuple[int, ...], table: Any) -> Any:
    """Counts each pair once instead of in both directions."""
    return sum(table[one][other] for one in nodes for other in nodes if one <= other)


@seeds("TOPO-OPT-007").by(_change_average)
def distance_leaves_nodes_themselves_out(nodes: tuple[int, ...], table: Any) -> Any:
    """Ignores the distances from nodes to themselves."""
    return sum(table[one][other] for one in nodes for other in nodes if one != other)


# The single-numa-node and none policies


class MostCentral(Distances):
    """Orders nodes by their distances to all nodes of the machine."""

    @property
    def by_table_alone(self) -> bool:
        """Always false, because nodes outside a set also count."""
        return False

    def sort_sets(self, sets: Collection[int]) -> list[int]:
        """Returns the sets with the most central nodes first, then by id."""
        table = self.table

        def total(nodes: int) -> int:
            return sum(sum(table[node].values()) for node in NUMASet.from_mask(nodes))

        return sorted(sets, key=lambda nodes: (total(nodes), nodes))


@shape(policies, "of_nodes", Changes.after)
def _single(
    kind: type[Distances], policy: TopologyPolicy, options: Any, rows: Any
) -> TopologyPolicy:
    """Compares distances of a `kind` under the single-numa-node policy if the option is on."""
    if not options.closest or not policy.rules.single:
        return policy
    return with_distances(policy, kind(dict(rows)))


@seeds("TOPO-OPT-008").of(_single, MostCentral)
def single_numa_node_takes_the_most_central_node() -> None:
    """Prefers the most central node under the single-numa-node policy."""


# Gaps between node ids


@seeds("TOPO-OPT-009").after(policies, "of_nodes")
def distances_do_not_count_where_node_ids_have_gaps(policy: Any, rows: Any) -> TopologyPolicy:
    """Ignores distances if node ids have gaps."""
    gaps = sorted(rows) != [*range(len(rows))]
    return with_distances(policy, None) if gaps else policy


@seeds("TOPO-OPT-009")
def nodes_beyond_their_number_are_unreachable(changes: Changes) -> None:
    """Looks up distances by node id instead of position."""

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


# The none policy


@seeds("TOPO-OPT-010").after(startup, "make_topology_policy")
def policy_none_ends_where_a_mask_of_nodes_does(
    topology_policy: Any, config: Any, machine: Any
) -> Any:
    """Refuses more than 32 NUMA nodes under the none policy."""
    if topology_policy is None and len(machine.topology or ()) > 4 * MAX_NODES:
        raise StartError(
            "topology", f"unsupported on machines with more than {4 * MAX_NODES} NUMA Nodes"
        )
    return topology_policy


# Many nodes


@seeds("TOPO-OPT-011").around(DeviceHints, "of_resource")
def devices_have_no_hints_on_many_nodes(rule: Any, self: DeviceHints) -> Any:
    """Returns no device hints on machines with more than eight nodes."""
    return None if len(self.nodes) > MAX_NODES else rule()


@seeds("TOPO-OPT-011").around(DeviceHints, "candidate_nodes")
def devices_are_found_on_the_first_nodes_alone(rule: Any, self: DeviceHints) -> Any:
    """Returns device hints only for the first eight nodes."""
    first = sorted(self.nodes)[:MAX_NODES]
    return tuple(node for node in rule() if node in first)


@seeds("TOPO-OPT-012").around(TopologyPolicy, "merge")
def four_resources_on_eight_nodes_are_refused(rule: Any, self: Any, providers: Any) -> Any:
    """Rejects pods with hints for four resources on eight nodes."""
    kept, admitted = rule()
    hinted = [one for one in merging.by_resource(providers) if one != merging.NO_PREFERENCE]
    many = self.rules.nodes.bit_count() >= MAX_NODES and len(hinted) >= MAX_NODES // 2
    return kept, admitted and not many
