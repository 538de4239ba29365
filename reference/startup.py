"""Starting a node: the stages in the kubelet's order, and why each can refuse to start.

A start reads the configuration, discovers the machine, creates the managers' policies, and restores
their checkpoints.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from numaproof.protocol.sets import CPUSet
from numaproof.reference.capacity import allocatable
from numaproof.reference.capacity.preemption import Preemption
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.checkpoints import devices as device_checkpoint
from numaproof.reference.checkpoints import memory as memory_checkpoint
from numaproof.reference.checkpoints.files import CheckpointError, CheckpointFile
from numaproof.reference.choices import NO_CHOICES
from numaproof.reference.config import configuration, eviction, flags
from numaproof.reference.config import reservation as cpu_reservation
from numaproof.reference.config.gates import GateError
from numaproof.reference.config.options import OptionError, as_map
from numaproof.reference.config.quota import Quotas
from numaproof.reference.cpu import options as cpu_options
from numaproof.reference.cpu import topology as cpu_topology
from numaproof.reference.cpu.gauges import CPUGauges
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.cpu.policy import PolicyError, StaticCPUPolicy, make_static
from numaproof.reference.devices.hints import DeviceHints
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.errors import StartError
from numaproof.reference.memory import policy as memory_policies
from numaproof.reference.memory import reservation
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.memory.state import MemoryState
from numaproof.reference.node import NodeSetup, StartedNode
from numaproof.reference.pods.manifest import read_pod
from numaproof.reference.pods.pod_level import PodRules
from numaproof.reference.resize import Resizing
from numaproof.reference.topology import options as topology_options
from numaproof.reference.topology import policy as topology_policies
from numaproof.reference.topology.distances import Distances

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from numaproof.protocol import messages
    from numaproof.protocol.machine import MachineInfo
    from numaproof.protocol.messages import Stage
    from numaproof.reference.choices import Choices
    from numaproof.reference.config.configuration import Config
    from numaproof.reference.cpu.topology import CPUTopology
    from numaproof.reference.deviations.releases import Release
    from numaproof.reference.pods.pod import Pod
    from numaproof.reference.topology.policy import TopologyPolicy


def start(
    args: messages.StartArgs,
    release: Release,
    discover: Callable[[str, Release], MachineInfo],
    choices: Choices = NO_CHOICES,
) -> StartedNode:
    """Starts a node; `discover` reads the machine from a tree.

    `choices` are preferred to equally good ones.

    Raises:
        StartError: the start is refused.
        UnsupportedError: the configuration uses something that the reference does not support.

    Requirements: CPU-ERROR-007, CPU-GATE-014, CPU-RECONCILE-010, CPU-RESTART-004, CPU-RESTART-005,
    DISCOVERY-026, NODE-ALLOC-001, NODE-ALLOC-016, NODE-RESTART-001, NODE-RESTART-002,
    NODE-RESTART-003, NODE-RESTART-004, TOPO-ORDER-001.
    """
    config = _configuration(args.config, release, args.flags)
    release = release.under(config.gates)
    machine = args.machine
    if machine is None:
        if args.root is None:
            raise ValueError("start needs a machine or a root")
        machine = discover(args.root, release)
    reserved = _reserved_cpus(config, machine, release)
    _check_cpu_options(config)
    topology_policy = make_topology_policy(config, machine, release)
    topology = _topology(machine, config, release)
    cpu = make_cpu_policy(config, topology, reserved, release)
    if cpu is not None and not config.named_cpus:
        cpu = cpu.reserving(choices.reserved_cpus)
    setup = NodeSetup(
        nodes=tuple(node.node_id for node in machine.topology or ()),
        topology=topology,
        cpu_policy=config.cpu_policy,
        cpu=cpu,
        memory_policy=config.memory_policy,
        memory=make_memory_policy(config, machine, release) if has_memory_manager(config) else None,
        topology_policy=topology_policy,
        scope=config.topology_scope,
        pod_level=release.pod_level_under(config.gates),
        pod_rules=release.rule(PodRules),
        quotas=release.rule(Quotas)(
            config.cfs_quota, config.gates.get("DisableCPUQuotaWithExclusiveCPUs", True)
        ),
        metrics=release.metrics,
        resizing=_resizing(config, release),
        effective_config=config.in_force() if "effective-configuration" in args.tell else None,
        include=frozenset(args.tell),
        allocatable=allocatable.of_node(config, machine, reserved) if args.check_node else None,
        preemption=release.rule(Preemption)(),
    )
    state_dir = Path(args.state_dir)
    present = tuple(read_pod(pod, setup.pod_level, setup.pod_rules) for pod in args.pods)
    cpus = start_cpus(setup, release, state_dir, present)
    memory = _start_memory(setup, release, state_dir, runs=has_memory_manager(config))
    if args.check_node and (why := allocatable.excess(config, machine, reserved)):
        raise StartError("config", why)
    devices = _start_devices(setup, release, state_dir)
    devices.report(args.devices)
    node = StartedNode(setup, devices, cpus, memory, present)
    node.choices = choices
    if args.running is not None:
        node.resume(args.running)
    else:
        # The reconcile loop makes its first pass immediately.
        node.remove_stale_state("reconcile", [cpus])
        node.save()
    return node


def _resizing(config: Config, release: Release) -> Resizing:
    return release.rule(Resizing)(
        is_enabled=release.resizes_pods and config.gates.get("InPlacePodVerticalScaling", True),
        has_static_cpus=config.cpu_policy == "static",
        has_static_memory=has_memory_manager(config) and config.memory_policy == "Static",
        allows_cpus=config.gates.get("InPlacePodVerticalScalingExclusiveCPUs", False),
        allows_memory=config.gates.get("InPlacePodVerticalScalingExclusiveMemory", False),
    )


def validation_error(
    kubelet_config: messages.KubeletConfiguration, machine: MachineInfo, release: Release
) -> str | None:
    """Returns what is invalid about a configuration at any stage, or None if it is valid.

    Covers invalid values, unknown policies and options, and conflicting options, but not requests
    that exceed the machine's resources.
    """
    try:
        config = _configuration(kubelet_config, release)
        _reserved_cpus(config, machine, release)
        _check_cpu_options(config)
        topology_options.check_gate(config.topology_options, config.gates)
        cpu_options.parse(config.cpu_options or {}, release.cpu_options, config.gates)
        aligning = config.topology_options or {}
        topology_options.parse(aligning, release.topology_options, config.gates)
    except (StartError, OptionError) as error:
        return str(error)
    if config.cpu_policy not in ("none", "static"):
        return f"unknown policy: {config.cpu_policy!r}"
    if config.memory_policy not in ("None", "Static"):
        return f"unknown policy: {config.memory_policy!r}"
    if config.cpu_policy == "none" and config.cpu_options:
        return "policy none has no options"
    return None


def _configuration(
    kubelet_config: messages.KubeletConfiguration,
    release: Release,
    command_line: Sequence[str] = (),
) -> Config:
    try:
        overriding = (
            flags.read(command_line, release.version, release.single_pair_flags)
            if command_line
            else {}
        )
    except configuration.ConfigError as error:
        text = str(error)
        for words, instead in release.flag_words.items():
            text = text.replace(words, instead)
        raise StartError("config", text) from None
    try:
        return configuration.load(
            kubelet_config, release.enabled_gates, release.unknown_fields, overriding
        )
    except GateError as error:
        raise StartError("config", f"{release.gates_refused}{error}") from None
    except configuration.ConfigError as error:
        raise StartError("config", str(error)) from None


def _reserved_cpus(config: Config, machine: MachineInfo, release: Release) -> Fraction:
    """Returns the CPU reservation. CPUs reserved by id must be online."""
    try:
        online = cpu_topology.derive(machine).all_cpus if config.named_cpus else CPUSet()
        reserved = cpu_reservation.reserved_cpus(
            config, online, round_reservation=release.round_reservation
        )
        eviction.check(config.eviction_hard)
    except cpu_topology.TopologyError as error:
        raise StartError("config", f"unable to discover CPU topology info: {error}") from None
    except (configuration.ConfigError, eviction.ThresholdError) as error:
        raise StartError("config", str(error)) from None
    return reserved


def _check_cpu_options(config: Config) -> None:
    try:
        cpu_options.check_gate(config.cpu_options, config.gates)
    except OptionError as error:
        raise StartError("config", str(error)) from None


def make_topology_policy(
    config: Config, machine: MachineInfo, release: Release
) -> TopologyPolicy | None:
    """Creates the Topology Manager's policy, or returns None for the ``none`` policy.

    Raises:
        StartError: the policy does not support an option or the machine.

    Requirements: TOPO-ERROR-005, TOPO-ERROR-009, TOPO-OPT-010, TOPO-POLICY-012, TOPO-POLICY-013.
    """
    given = config.topology_options
    try:
        topology_options.check_gate(given, config.gates)
    except OptionError as error:
        raise StartError("config", str(error)) from None
    if config.topology_policy == topology_policies.NONE:
        return None
    try:
        options = topology_options.parse(
            given or {}, release.topology_options, config.gates, release.hidden_topology_option
        )
        return topology_policies.on_machine(
            config.topology_policy, options, machine, release.rule(Distances)
        )
    except (OptionError, topology_policies.TopologyManagerError) as error:
        raise StartError("topology", str(error)) from None


def _topology(machine: MachineInfo, config: Config, release: Release) -> CPUTopology:
    try:
        return cpu_topology.derive(machine)
    except cpu_topology.TopologyError as error:
        if config.cpu_policy == "static" or release.reads_cpus_for_every_policy:
            raise StartError("cpu", str(error)) from None
        return cpu_topology.NO_CPUS


def make_cpu_policy(
    config: Config, topology: CPUTopology, reserved: Fraction, release: Release
) -> StaticCPUPolicy | None:
    """Creates the CPU Manager's policy, or returns None for the ``none`` policy.

    Raises:
        StartError: the policy is unknown, nothing is reserved, or an option is invalid.

    Requirements: CPU-CONFIG-001, CPU-CONFIG-002, CPU-CONFIG-003, CPU-NONE-004,
    CPU-OPT-ALIGNSOCKET-004, CPU-OPT-ALIGNSOCKET-005, CPU-RESERVE-002, CPU-RESERVE-003,
    CPU-RESERVE-004.
    """
    if config.cpu_policy == "none":
        if config.cpu_options:
            raise StartError(
                "cpu",
                "new none policy error: None policy: received unsupported "
                f"options={as_map(config.cpu_options)}",
            )
        return None
    if config.cpu_policy != "static":
        raise StartError("cpu", f'unknown policy: "{config.cpu_policy}"')
    if not reserved:
        raise StartError(
            "cpu",
            "[cpumanager] unable to determine reserved CPU resources for static policy",
        )
    try:
        options = cpu_options.parse(config.cpu_options or {}, release.cpu_options, config.gates)
        cpu_options.validate(options, topology, config.topology_policy)
        return make_static(
            topology,
            options,
            math.ceil(reserved),
            config.named_cpus.mask,
            release.cpu_rules,
        )
    except (OptionError, PolicyError) as error:
        raise StartError("cpu", f"new static policy error: {error}") from None


def has_memory_manager(config: Config) -> bool:
    """Whether the Memory Manager's feature gate is on.

    Requirements: MEM-GATE-001.
    """
    return config.gates.get("MemoryManager", True)


def make_memory_policy(
    config: Config, machine: MachineInfo, release: Release
) -> memory_policies.StaticMemoryPolicy | None:
    """Creates the Memory Manager's policy, or returns None for the ``None`` policy.

    Raises:
        StartError: the policy is unknown, or the reservations do not add up.

    Requirements: MEM-CONFIG-001, MEM-CONFIG-003, MEM-HINT-010, MEM-NONE-003.
    """
    if config.memory_policy == "None":
        return None
    if config.memory_policy != "Static":
        if config.memory_policy in release.foreign_memory_policies:
            raise StartError(
                "memory", f'policy "{config.memory_policy}" is not available for platform "linux"'
            )
        raise StartError("memory", f'unknown policy: "{config.memory_policy}"')
    try:
        reserved = reservation.by_node(config, machine)
    except reservation.ReservationError as error:
        raise StartError("memory", str(error)) from None
    return memory_policies.make_static(
        machine, reserved, release.rule(memory_policies.StaticMemoryPolicy)
    )


def _checkpoint_error(stage: Stage, name: str, path: str, error: Exception) -> StartError:
    return StartError(
        stage,
        f"start {stage} manager error: could not restore state from checkpoint: {error}, "
        f"please drain this node and delete the {name} manager checkpoint file "
        f'"{path}" before restarting Kubelet',
    )


def start_cpus(
    setup: NodeSetup, release: Release, state_dir: Path, present: tuple[Pod, ...]
) -> CPUManager:
    """Starts the CPU Manager from its checkpoint.

    Raises:
        StartError: the checkpoint is unreadable or does not fit the machine.

    Requirements: CPU-CHECKPOINT-012, CPU-CHECKPOINT-020, CPU-ERROR-002, CPU-ERROR-003,
    CPU-NONE-006, CPU-RESTART-001, CPU-RESTART-008.
    """
    policy = setup.cpu_policy
    dump = partial(cpu_checkpoint.dump, policy=policy, formats=release.cpu_files)
    file = CheckpointFile(state_dir, cpu_checkpoint.FILE_NAME, dump)
    # Only version 1 of the file contains container ids; here, they have the form "uid/name".
    running = {
        f"{pod.uid}/{container.name}": (pod.uid, container.name)
        for pod in present
        for container in pod.containers
    }
    content = file.read()
    restored = release.cpu_files.empty
    try:
        if content is not None:
            restored = cpu_checkpoint.restore(content, policy, running, release.cpu_files)
        state = setup.cpu.restore(restored) if setup.cpu else restored
    except CheckpointError as error:
        raise _checkpoint_error("cpu", "CPU", file.path, error) from None
    except PolicyError as error:
        raise StartError("cpu", f"start cpu manager error: {error}") from None
    if content is None or state is not restored:
        file.write(state)
    return release.rule(CPUManager)(setup.cpu, state, file, release.rule(CPUGauges))


def _start_memory(
    setup: NodeSetup, release: Release, state_dir: Path, *, runs: bool
) -> MemoryManager:
    policy = setup.memory_policy
    dump = partial(memory_checkpoint.dump, policy=policy, formats=release.memory_files)
    file = CheckpointFile(state_dir, memory_checkpoint.FILE_NAME, dump)
    if not runs:
        return release.rule(MemoryManager)(None, MemoryState(), file)
    content = file.read()
    restored = MemoryState()
    try:
        if content is not None:
            restored = memory_checkpoint.restore(content, policy, release.memory_files)
        state = setup.memory.restore(restored) if setup.memory else restored
    except CheckpointError as error:
        raise _checkpoint_error("memory", "memory", file.path, error) from None
    except memory_policies.RestoreError as error:
        raise StartError("memory", f"start memory manager error: {error}") from None
    if content is None or state is not restored:
        file.write(state)
    return release.rule(MemoryManager)(setup.memory, state, file)


def _start_devices(setup: NodeSetup, release: Release, state_dir: Path) -> DeviceManager:
    file = CheckpointFile(state_dir, device_checkpoint.FILE_NAME, device_checkpoint.dump)
    hints = release.rule(DeviceHints)(setup.nodes)
    return release.rule(DeviceManager)(hints, device_checkpoint.load(file.read()), file)
