"""Tests in package ``cpumanager``: the static policy, alone or below the Topology Manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from numaproof.conformance.go_tests import checks, literals
from numaproof.conformance.go_tests.checks import NotExpressibleError
from numaproof.conformance.go_tests.form import (
    ContainerForm,
    active_pods,
    admission,
    allocation,
    given_affinity,
    must,
    refusal,
    topology_manager,
)
from numaproof.conformance.go_tests.syntax import block, composite, quote, string_map
from numaproof.protocol import codec, messages
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.cases.schema import ContainerExpected
    from numaproof.conformance.go_tests.playing import PlayedCall
    from numaproof.protocol.messages import Pod

GAUGES = {
    "cpu_manager_exclusive_cpu_allocation_count": "CPUManagerExclusiveCPUsAllocationCount",
    "cpu_manager_shared_pool_size_millicores": "CPUManagerSharedPoolSizeMilliCores",
}


class CPUForm(ContainerForm):
    """The static policy by itself. The Topology Manager's affinity is the documented one."""

    package: ClassVar[str] = "cm/cpumanager"

    def gates(self, *more: str) -> Iterator[str]:
        assigns = any(isinstance(one.args, messages.AssignArgs) for one in self.calls)
        alpha = ("CPUManagerPolicyAlphaOptions",) if assigns else ()
        yield from super().gates(*alpha, *more)
        if any(one.expected.metrics for one in self.calls):
            yield "metrics.Register()"

    def start(self, call: PlayedCall, args: messages.StartArgs) -> Iterator[str]:
        if not isinstance(call.answer, messages.Started):
            raise NotExpressibleError("a refused start is not supported")
        checks.only(call.expected, "allocatable", "readmission")
        self._check_policy()
        is_restart = self.has("policy")
        if not is_restart:
            yield self.assign("topo", literals.cpu_topology(self.machine(args)))
        cpus = call.answer.cpus
        reserved = CPUSet.parse(self.config.get("reservedSystemCPUs") or "")
        yield from self._policy(
            len(cpus.all - cpus.allocatable),
            reserved,
            self.config.get("cpuManagerPolicyOptions") or {},
        )
        if not is_restart:
            yield self._state()
        yield from must(f"policy.Start({self.arguments('cpu Start', 'st')})")
        if call.expected.allocatable is not None:
            yield self.assign("got", "policy.GetAllocatableCPUs(st)")
            yield from checks.cpus(call.expected.allocatable, "the node", self.assign)

    def _check_policy(self) -> None:
        if self.config.get("cpuManagerPolicy") != "static":
            raise NotExpressibleError("the CPU Manager's policy is not `static`")

    def _state(self) -> str:
        made = f"state.NewMemoryState({self.arguments('cpu NewMemoryState')})"
        return self.assign("st", made)

    def _policy(self, count: int, cpus: CPUSet, options: dict[str, str]) -> Iterator[str]:
        arguments = self.arguments(
            "cpu NewStaticPolicy",
            *("topo", str(count), literals.cpu_set(cpus), self.affinity()),
            string_map(options),
        )
        yield from self.attempt("policy, err", f"NewStaticPolicy({arguments})", "NewStaticPolicy")

    def affinity(self) -> str:
        """Returns the store of affinities for the policy."""
        policy = "topologymanager.NewNonePolicy()"
        arguments = self.arguments("topology NewFakeManagerWithPolicy", policy)
        return f"topologymanager.NewFakeManagerWithPolicy({arguments})"

    def admit(self, call: PlayedCall, pod: str, manifest: Pod) -> Iterator[str]:
        checks.only(call.expected, "refused", "containers")
        if call.expected.refused == "UnexpectedAdmissionError" and "cpus" not in refusal(call):
            raise NotExpressibleError("a refusal by another manager is not supported")
        yield from self.allocation(call, pod, manifest)
        uid = manifest["metadata"]["uid"]
        for name, expected in call.expected.containers.items():
            yield from self._container(uid, name, expected)

    def allocation(self, call: PlayedCall, pod: str, manifest: Pod) -> Iterator[str]:
        """Yields statements that admit a pod."""
        yield from given_affinity(self, call)
        yield from allocation(self, call, pod, manifest, "cpu Allocate")

    def _container(self, uid: str, name: str, expected: ContainerExpected) -> Iterator[str]:
        checks.only(expected, "exclusive", "cpus", "affinity")
        holder = f"{quote(uid)}, {quote(name)}"
        if expected.exclusive is not None:
            yield self.assign("got, _", f"st.GetCPUSet({holder})")
            yield from checks.cpus(expected.exclusive, name, self.assign)
        if expected.cpus is not None:
            yield self.assign("got", f"st.GetCPUSetOrDefault({holder})")
            yield from checks.cpus(expected.cpus, name, self.assign)
        if expected.affinity is not None:
            yield from self.check_affinity(holder, expected.affinity)

    def check_affinity(self, holder: str, expected: dict[str, object]) -> Iterator[str]:
        """Yields statements that compare a container's affinity; this form gives it instead."""
        del holder, expected
        yield from ()

    def removal(self, uid: str, container: str) -> str:
        arguments = self.arguments("cpu RemoveContainer", "st", quote(uid), quote(container))
        (removal,) = must(f"policy.RemoveContainer({arguments})")
        return removal

    def state(self, call: PlayedCall) -> Iterator[str]:
        expected = call.expected
        checks.only(expected, "shared", "metrics", "pods")
        if expected.shared is not None:
            yield self.assign("got", "st.GetDefaultCPUSet()")
            yield from checks.cpus(expected.shared, "the shared pool", self.assign)
        for pod, containers in (expected.pods or {}).items():
            for name, one in containers.items():
                yield from self._container(f"uid-{pod}", name, one)
        for name, value in (expected.metrics or {}).items():
            if name not in GAUGES:
                raise NotExpressibleError(f"the metric {name} is not supported")
            read = f"testutil.GetGaugeMetricValue(metrics.{GAUGES[name]})"
            yield from self.attempt("value, err", read, "GetGaugeMetricValue")
            yield block(f"if value != {value}", f't.Errorf("{name} is %v, want {value}", value)')

    def other(self, call: PlayedCall) -> Iterator[str]:
        args = call.args
        if not isinstance(args, messages.AssignArgs):
            yield from super().other(call)
            return
        checks.only(call.expected, "cpus")
        if any(isinstance(one.args, messages.StartArgs) for one in self.calls):
            raise NotExpressibleError("a node next to `assign` is not supported")
        yield self.assign("topo", literals.cpu_topology(args.machine))
        yield from self._policy(0, CPUSet(), args.options)
        yield self._state()
        yield f"st.SetDefaultCPUSet({literals.cpu_set(args.available)})"
        amounts = {"cpu": str(args.count), "memory": "1Gi"}
        manifest: Pod = {
            "metadata": {"name": "a", "uid": "uid-a"},
            "spec": {"containers": [{"name": "app", "resources": {"limits": amounts}}]},
        }
        yield from self._pod(manifest)
        yield from self.allocation(call, "podA", manifest)
        if call.expected.cpus is not None:
            yield self.assign("got, _", 'st.GetCPUSet("uid-a", "app")')
            yield from checks.cpus(call.expected.cpus, "app", self.assign)


class AdmittingCPUForm(CPUForm):
    """The CPU Manager with its static policy, asked by the real Topology Manager."""

    def start(self, call: PlayedCall, args: messages.StartArgs) -> Iterator[str]:
        if args.devices or self.config.get("memoryManagerPolicy") == "Static":
            raise NotExpressibleError("hints of several managers are not supported")
        if not self.has("nodes"):
            nodes = literals.nodes_with_distances(self.machine(args).topology or ())
            yield self.assign("nodes", nodes)
            yield self.assign("pods", "[]*v1.Pod{}")
        yield from topology_manager(self, "nodes")
        yield from super().start(call, args)
        manager = composite(
            "&manager",
            [
                ("policy", "policy"),
                ("state", "st"),
                (
                    "lastUpdateState",
                    f"state.NewMemoryState({self.arguments('cpu NewMemoryState')})",
                ),
                ("containerRuntime", "mockRuntimeService{}"),
                ("containerMap", "containermap.NewContainerMap()"),
                ("activePods", "func() []*v1.Pod { return pods }"),
                ("podStatusProvider", "mockPodStatusProvider{}"),
                ("sourcesReady", "&sourcesReadyStub{}"),
            ],
        )
        yield self.assign("mgr", manager)
        yield f"affinity.AddHintProvider({self.arguments('topology AddHintProvider', 'mgr')})"

    def affinity(self) -> str:
        return "affinity"

    def allocation(self, call: PlayedCall, pod: str, manifest: Pod) -> Iterator[str]:
        del manifest
        yield from admission(self, call, pod)

    def check_affinity(self, holder: str, expected: dict[str, object]) -> Iterator[str]:
        hint = codec.from_plain(expected, messages.Hint)
        read = f"affinity.GetAffinity({self.arguments('topology GetAffinity', holder)})"
        wrong = f"hint.Preferred != {str(hint.preferred).lower()}"
        if hint.numa is not None:
            yield from self.mask(hint)
            wrong = f"!hint.NUMANodeAffinity.IsEqual(mask) || {wrong}"
        yield self.assign("hint", read)
        yield block(f"if {wrong}", f't.Errorf("the affinity is %v, want {expected}", hint)')

    def remove(self, call: PlayedCall, args: messages.RemoveArgs) -> Iterator[str]:
        if args.container is not None:
            yield from super().remove(call, args)
            return
        del self.on_node[args.uid]
        yield self.assign("pods", active_pods(self))
        yield f"mgr.removeStaleState({self.arguments('cpu removeStaleState')})"
