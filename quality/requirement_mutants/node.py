"""Mutants of the command line, the node's state and rejected pods."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol import messages
from numaproof.reference import startup
from numaproof.reference.checkpoints import devices as device_checkpoint
from numaproof.reference.checkpoints import files
from numaproof.reference.checkpoints import memory as memory_checkpoint
from numaproof.reference.config import configuration, flags
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.devices.state import DeviceState, devices_by_resource
from numaproof.reference.errors import AdmissionError, StartError
from numaproof.reference.memory import policy as memory_policies
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.node import StartedNode
from quality.requirement_mutants.checkpoints import older_part
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.reference.memory.policy import StaticMemoryPolicy
    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("node")


# Command line


_POLICIES = ("none", "static")
_TOPOLOGY_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")


def _read(changes: Changes, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Lets `change` replace the fields that flags set."""
    changes.around(flags, "read", lambda rule: change(dict(rule())))


def _without(field: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda config_fields: {
        name: value for name, value in config_fields.items() if name != field
    }


@shape(configuration, "load")
def _change_flag_settings(change: Change, rule: Any, kubelet_config: Any, flags: Any) -> Any:
    """Lets `change` replace the flags' fields, given the configuration file."""
    return rule(flags=change(dict(kubelet_config), dict(flags)))


# The CPU Manager's policy


@seeds("CPU-CONFIG-016").of(_read, _without("cpuManagerPolicy"))
def cpu_policy_flag_is_passed_over() -> None:
    """Ignores the flag for the CPU policy."""


@seeds("CPU-CONFIG-016").by(_read)
def cpu_policy_flag_switches_the_policy_on_alone(flag_fields: dict[str, Any]) -> dict[str, Any]:
    """Ignores the flag for the CPU policy if it is none."""
    return (
        _without("cpuManagerPolicy")(flag_fields)
        if flag_fields.get("cpuManagerPolicy") == "none"
        else flag_fields
    )


@seeds("CPU-CONFIG-016").by(_read)
def unknown_cpu_policy_flag_means_none(flag_fields: dict[str, Any]) -> dict[str, Any]:
    """Treats an unknown CPU policy in a flag as none."""
    if flag_fields.get("cpuManagerPolicy", "none") not in _POLICIES:
        return flag_fields | {"cpuManagerPolicy": "none"}
    return flag_fields


# CPUs reserved by name


@seeds("CPU-CONFIG-017").of(_read, _without("reservedSystemCPUs"))
def reserved_cpus_flag_is_passed_over() -> None:
    """Ignores the flag for reserved CPUs."""


@seeds("CPU-CONFIG-017").by(_change_flag_settings)
def reserved_cpus_flag_fills_in_what_is_missing(
    kubelet_config: Any, flag_fields: Any
) -> dict[str, Any]:
    """Ignores the flag for reserved CPUs if the file also sets them."""
    return (
        _without("reservedSystemCPUs")(flag_fields)
        if kubelet_config.get("reservedSystemCPUs")
        else flag_fields
    )


@seeds("CPU-CONFIG-017").by(_read)
def reserved_cpus_flag_takes_no_words(flag_fields: dict[str, Any]) -> dict[str, Any]:
    """Ignores a malformed list of reserved CPUs in a flag."""
    text = flag_fields.get("reservedSystemCPUs", "0")
    return flag_fields if text[:1].isdigit() else _without("reservedSystemCPUs")(flag_fields)


# CPUs reserved by quantity


@seeds("CPU-CONFIG-018").of(_read, _without("kubeReserved"))
def kube_reserved_flag_is_passed_over() -> None:
    """Ignores the flag for kubeReserved."""


@seeds("CPU-CONFIG-018").of(_read, _without("systemReserved"))
def system_reserved_flag_is_passed_over() -> None:
    """Ignores the flag for systemReserved."""


@seeds("CPU-CONFIG-018").by(_read)
def one_reservation_flag_stands_for_both(flag_fields: dict[str, Any]) -> dict[str, Any]:
    """Ignores the flag for kubeReserved if systemReserved is also set."""
    return _without("kubeReserved")(flag_fields) if "systemReserved" in flag_fields else flag_fields


# Unknown flags


@seeds("CPU-CONFIG-019").around(flags, "read")
def unknown_flags_are_passed_over(rule: Any) -> Any:
    """Ignores unknown flags."""
    try:
        return rule()
    except ConfigError as error:
        if "unknown flag" in str(error):
            return {}
        raise


@seeds("CPU-CONFIG-019").around(flags, "read")
def flags_of_earlier_releases_are_taken(rule: Any, command_line: Any, release: Any) -> Any:
    """Accepts flags that the release removed."""
    gone = set().union(*flags.table().values()) - flags.table()[release]
    return rule(
        command_line=[
            one for one in command_line if one.removeprefix("--").partition("=")[0] not in gone
        ]
    )


@seeds("CPU-CONFIG-019").around(flags, "read")
def misspelt_flags_are_guessed(rule: Any, command_line: Any) -> Any:
    """Ignores misspelt flags that start like a known flag."""
    known = [one for one in command_line if not one.startswith("--cpu-manager-pol")]
    return rule(command_line=known)


@seeds("CPU-CONFIG-019").around(flags, "read")
def removed_runtime_flag_is_passed_over(rule: Any, command_line: Any) -> Any:
    """Ignores the removed flag --container-runtime."""
    return rule(command_line=[one for one in command_line if "container-runtime=" not in one])


# Precedence


@seeds("CPU-CONFIG-020").by(_change_flag_settings)
def the_file_counts_more_than_flags(
    kubelet_config: dict[str, Any], flag_fields: dict[str, Any]
) -> Any:
    """Prefers the file to flags."""
    return {name: one for name, one in flag_fields.items() if name not in kubelet_config}


@seeds("CPU-CONFIG-020").by(_change_flag_settings)
def flags_add_to_the_maps_of_the_file(
    kubelet_config: Any, flag_fields: dict[str, Any]
) -> dict[str, Any]:
    """Merges maps in flags with those in the file."""
    return {
        name: {**(kubelet_config.get(name) or {}), **one} if isinstance(one, dict) else one
        for name, one in flag_fields.items()
    }


@seeds("CPU-CONFIG-020").around(configuration, "load")
def flags_leave_nothing_of_the_file(rule: Any, kubelet_config: Any, flags: Any) -> Any:
    """Ignores the file if any flag is set."""
    return rule(kubelet_config={} if flags else kubelet_config)


# The Topology Manager's policy


@seeds("TOPO-POLICY-017").of(_read, _without("topologyManagerPolicy"))
def topology_policy_flag_is_passed_over() -> None:
    """Ignores the flag for the topology policy."""


@seeds("TOPO-POLICY-017").by(_read)
def unknown_topology_policy_flag_means_none(flag_fields: dict[str, Any]) -> dict[str, Any]:
    """Treats an unknown topology policy in a flag as none."""
    if flag_fields.get("topologyManagerPolicy", "none") not in _TOPOLOGY_POLICIES:
        return flag_fields | {"topologyManagerPolicy": "none"}
    return flag_fields


# The reconcile period


def _period(text: str) -> dict[str, str]:
    return {"cpuManagerReconcilePeriod": text}


@seeds("CPU-RECONCILE-003").after(
    configuration.Config, "in_force", lambda config_fields: config_fields | _period("10s")
)
def reconcile_period_is_fixed() -> None:
    """Always uses the default reconcile period."""


@seeds("CPU-RECONCILE-003").of(_read, _without("cpuManagerReconcilePeriod"))
def reconcile_period_flag_is_passed_over() -> None:
    """Ignores the flag for the reconcile period."""


@seeds("CPU-RECONCILE-003").after(configuration.Config, "in_force")
def reconcile_period_is_a_minute_at_most(config_fields: dict[str, Any], self: Any) -> Any:
    """Limits the reconcile period to one minute."""
    return config_fields | _period("1m0s") if "m" in self.reconcile_period else config_fields


@seeds("CPU-RECONCILE-010").after(configuration.Config, "in_force")
def reconcile_period_is_that_of_the_node_status(config_fields: dict[str, Any], self: Any) -> Any:
    """Defaults to the five minutes of nodeStatusReportFrequency."""
    return config_fields | _period("5m0s") if self.reconcile_period == "10s" else config_fields


@seeds("CPU-RECONCILE-010").around(configuration, "load")
def reconcile_period_of_zero_stays(rule: Any, kubelet_config: Any, *rest: Any) -> Any:
    """Keeps a reconcile period of zero instead of using the default."""
    zero = kubelet_config.get("cpuManagerReconcilePeriod") == "0s"
    if zero:
        return rule(kubelet_config, *rest[:2], {**rest[2], "cpuManagerReconcilePeriod": "0s"})
    return rule(kubelet_config, *rest)


# The status of rejected pods


@shape(StartedNode, "rejected_pod_status", Changes.after)
def _fate(change: Callable[[Any], dict[str, str]], pod: Any) -> Any:
    """Lets `change` override the status of a rejected pod."""
    return None if pod is None else msgspec.structs.replace(pod, **change(pod))


@seeds("NODE-REFUSED-002").of(_fate, lambda _: {"phase": "Pending"})
def refused_pods_stay_pending() -> None:
    """Leaves rejected pods pending."""


@seeds("NODE-REFUSED-002").of(_fate, lambda _: {"phase": "Terminated"})
def refused_pods_are_terminated() -> None:
    """Sets the phase of rejected pods to Terminated, the documentation's word."""


@seeds("NODE-REFUSED-002").by(_fate)
def only_pods_refused_for_their_affinity_are_failed(pod: Any) -> Any:
    """Leaves pods pending unless their reason is TopologyAffinityError."""
    return {} if pod.reason == "TopologyAffinityError" else {"phase": "Pending"}


@seeds("NODE-REFUSED-002").of(_fate, lambda _: {"reason": "UnexpectedAdmissionError"})
def refused_pods_have_one_reason() -> None:
    """Rejects all pods with UnexpectedAdmissionError."""


@seeds("NODE-REFUSED-002").by(_fate)
def pods_refused_for_smt_have_the_reason_of_the_topology(pod: Any) -> dict[str, str]:
    """Replaces SMTAlignmentError with TopologyAffinityError."""
    return {"reason": "TopologyAffinityError"} if pod.reason == "SMTAlignmentError" else {}


@seeds("NODE-REFUSED-003").of(_fate, lambda pod: {"message": pod.event})
def refused_pods_say_only_why() -> None:
    """Writes only the error into the pod's message."""


@seeds("NODE-REFUSED-003").of(_fate, lambda pod: {"event": pod.message})
def events_say_that_pods_were_rejected() -> None:
    """Writes the pod's message into the event."""


@seeds("NODE-REFUSED-003").of(_fate, lambda pod: {"event": f"{pod.reason}: {pod.event}"})
def events_name_the_reason() -> None:
    """Adds the reason to the event."""


# Order of startup


def _memory_damage(setup: Any, release: Any, state_dir: Path) -> str:
    """Returns the error in the memory checkpoint, or nothing if it is valid or missing."""
    content = files.read(state_dir / memory_checkpoint.FILE_NAME)
    if content is None:
        return ""
    try:
        state = memory_checkpoint.restore(content, setup.memory_policy, release.memory_files)
        if setup.memory:
            setup.memory.restore(state)
    except (files.CheckpointError, memory_policies.RestoreError) as error:
        return str(error)
    return ""


@seeds("NODE-RESTART-002").around(startup, "start_cpus")
def memory_manager_starts_before_the_cpu_manager(
    rule: Any, setup: Any, release: Any, state_dir: Path
) -> Any:
    """Starts the Memory Manager before the CPU Manager."""
    try:
        return rule()
    except StartError:
        damage = _memory_damage(setup, release, state_dir)
        if damage:
            raise StartError("memory", f"start memory manager error: {damage}") from None
        raise


# Rejected pods


def _left_behind(
    changes: Changes, manager: type[Any], stays: Callable[[Pod, AdmissionError], bool]
) -> None:
    """Keeps a manager's resources of rejected pods if `stays` is true."""

    def admit(rule: Any, self: StartedNode, args: messages.AdmitArgs) -> Any:
        pod = self.read_pod(args.pod)
        try:
            return rule()
        except AdmissionError as error:
            if stays(pod, error):
                for provider in self.providers:
                    vars(provider).setdefault("refused", {})[pod.uid] = pod
            raise

    changes.around(StartedNode, "admit", admit)
    changes.around(
        manager,
        "remove_stale_state",
        lambda rule, self, pods: rule(pods={**vars(self).get("refused", {}), **pods}),
    )


@seeds("NODE-REFUSED-001").by(_left_behind, MemoryManager)
def pod_without_affinity_leaves_its_memory_allocated(pod: Pod, error: AdmissionError) -> Any:
    """Keeps the memory of pods rejected with TopologyAffinityError."""
    return error.reason == "TopologyAffinityError"


# The reported state


@shape(StartedNode, "state", Changes.after)
def _change_containers(change: Change, answer: messages.State, self: StartedNode) -> messages.State:
    """Lets `change` replace the fields of each container in the state."""
    pods = {
        uid: {
            name: messages.Container(**change(self, self.pods[uid], name, _fields(container)))
            for name, container in containers.items()
        }
        for uid, containers in answer.pods.items()
    }
    return messages.State(answer.shared, pods, answer.files)


def _fields(container: messages.Container) -> dict[str, Any]:
    return {name: getattr(container, name) for name in container.__struct_fields__}


def _kind(pod: Pod, name: str) -> str:
    container = pod.container(name)
    return "sidecar" if container.sidecar else "init" if container.init else "app"


@seeds("NODE-STATE-001").by(_change_containers)
def state_forgets_the_memory_of_init_containers(node: Any, pod: Pod, name: str, fields: Any) -> Any:
    """Omits the memory of init containers."""
    return {**fields, "memory": ()} if _kind(pod, name) == "init" else fields


@seeds("NODE-STATE-001").by(_change_containers)
def state_forgets_huge_pages(node: StartedNode, pod: Pod, name: str, fields: dict[str, Any]) -> Any:
    """Omits huge pages."""
    return {
        **fields,
        "memory": tuple(block for block in fields["memory"] if block.type == "memory"),
    }


@seeds("NODE-STATE-001").by(_change_containers)
def state_keeps_devices_of_one_resource(node: StartedNode, pod: Pod, name: str, fields: Any) -> Any:
    """Reports only the resource allocated last."""
    return {**fields, "devices": fields["devices"] and dict([*fields["devices"].items()][-1:])}


@seeds("NODE-STATE-001").by(_change_containers)
def state_forgets_the_devices_of_sidecars(node: Any, pod: Pod, name: str, fields: Any) -> Any:
    """Omits the devices of sidecars."""
    return (
        {**fields, "devices": {}} if fields["devices"] and _kind(pod, name) == "sidecar" else fields
    )


@seeds("NODE-STATE-001").around(StartedNode, "admit")
def state_keeps_the_affinity_of_the_last_pod(rule: Any, self: StartedNode) -> Any:
    """Reports only the affinity of the last pod."""
    self.affinity.clear()
    return rule()


@seeds("NODE-STATE-001").by(_change_containers)
def state_keeps_the_affinity_of_pinned_containers_alone(
    _: StartedNode, __: Pod, ___: str, fields: dict[str, Any]
) -> dict[str, Any]:
    """Omits the affinity of containers without pinned resources."""
    if fields["exclusive"] or fields["memory"] or any((fields["devices"] or {}).values()):
        return fields
    return {**fields, "affinity": messages.Hint(None, preferred=False)}


# The memory checkpoint


def _older_memory(changes: Changes, change: Callable[[dict[str, Any]], object]) -> None:
    """Lets `change` edit the part of the checkpoint for earlier releases."""

    def seal(rule: Any, format_: Any, content: Any) -> Any:
        content = copy.deepcopy(content)
        change(content)
        return rule(format_, content)

    older_part(changes, "memory manager", seal)


@seeds("NODE-STATE-002").by(_older_memory)
def memory_checkpoint_lists_one_block_of_each_container(content: dict[str, Any]) -> None:
    """Omits huge pages from the entries."""
    for containers in content["entries"].values():
        for name, blocks in containers.items():
            containers[name] = [one for one in blocks if one["type"] == "memory"]


@seeds("NODE-STATE-002").by(_older_memory)
def memory_checkpoint_reserves_a_block_on_its_first_node(content: dict[str, Any]) -> None:
    """Reserves a group's memory on its lowest node."""
    nodes = content["machineState"]
    for node, memory in nodes.items():
        first = nodes.get(memory["cells"][0]) if memory["cells"] else None
        for kind, table in memory["memoryMap"].items():
            if first is not None and node != memory["cells"][0]:
                first["memoryMap"][kind]["reserved"] += table["reserved"]
                table["reserved"] = 0


@seeds("NODE-STATE-002").by(_older_memory)
def memory_checkpoint_writes_free_memory_of_an_empty_node(content: dict[str, Any]) -> None:
    """Writes allocatable memory as free memory."""
    for memory in content["machineState"].values():
        for table in memory["memoryMap"].values():
            table["free"] = table["allocatable"]


@seeds("NODE-STATE-002").after(memory_policies, "make_static")
def huge_pages_are_reserved_for_the_system(policy: StaticMemoryPolicy) -> StaticMemoryPolicy:
    """Adds huge pages to the system's memory."""
    empty = {}
    for node, memory in policy.empty.items():
        table = memory.tables["memory"]
        pages = sum(own.total for kind, own in memory.tables.items() if kind != "memory")
        tables = {**memory.tables, "memory": table._replace(system=table.system + pages)}
        empty[node] = replace(memory, tables=tables)
    return replace(policy, empty=empty)


# Restarts


@shape(startup, "start", Changes.after)
def _after_start(change: Callable[[StartedNode], object], node: StartedNode) -> StartedNode:
    """Calls `change` after each start."""
    change(node)
    node.save()
    return node


@seeds("NODE-RESTART-001").by(_after_start)
def restart_takes_the_cpus_of_sidecars(node: StartedNode) -> None:
    """Releases the CPUs of sidecars on restart."""
    for pod in node.pods.values():
        for container in pod.containers:
            if container.sidecar:
                node.cpus.end(pod.uid, container.name)


@seeds("NODE-RESTART-001").by(_after_start)
def restart_shares_the_cpus_of_init_containers(node: StartedNode) -> None:
    """Adds the CPUs of init containers, even reused ones, to the shared pool on restart."""
    state = node.cpus.state
    had = 0
    for pod in node.pods.values():
        for container in pod.containers:
            if container.runs_to_completion:
                had |= state.of(pod.uid, container.name) or 0
    if had:
        node.cpus.state = replace(state, shared=state.shared | had)


@seeds("NODE-RESTART-001").by(_after_start)
def restart_takes_memory_that_lies_on_several_nodes(node: StartedNode) -> None:
    """Releases memory on several nodes on restart."""
    for uid, name, blocks in tuple(node.memory.state):
        if any(block.nodes.bit_count() > 1 for block in blocks):
            node.memory.end(uid, name)


@seeds("NODE-RESTART-001").after(device_checkpoint, "load")
def restart_keeps_devices_of_one_resource(state: DeviceState) -> DeviceState:
    """Restores only one resource of each container."""
    held = {
        uid: {name: dict([*own.items()][-1:]) for name, own in containers.items()}
        for uid, containers in state.held_devices.items()
    }
    return replace(state, held_devices=held, allocated_devices=devices_by_resource(held))


@seeds("NODE-RESTART-001").around(
    device_checkpoint, "load", lambda rule: replace(rule(), allocated_devices={})
)
def restart_gives_held_devices_to_others() -> None:
    """Restores which devices are held, but not that they are allocated."""
