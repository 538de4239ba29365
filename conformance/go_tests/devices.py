"""Tests in package ``devicemanager``: the Device Manager, asked by the Topology Manager."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.schema import DevicesExpected
from numaproof.conformance.go_tests import checks, literals
from numaproof.conformance.go_tests.checks import NotExpressibleError
from numaproof.conformance.go_tests.form import (
    Form,
    active_pods,
    admission,
    must,
    refusal,
    topology_manager,
)
from numaproof.conformance.go_tests.syntax import block, composite, quote
from numaproof.protocol import messages
from numaproof.protocol.sets import NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.conformance.go_tests.playing import PlayedCall
    from numaproof.protocol.messages import Pod


class DeviceForm(Form):
    """The Device Manager, with the plugins' answers from the package's own ``MockEndpoint``."""

    package: ClassVar[str] = "cm/devicemanager"
    _nodes: Mapping[str, Mapping[str, NUMASet | None]]

    def start(self, call: PlayedCall, args: messages.StartArgs) -> Iterator[str]:
        if not isinstance(call.answer, messages.Started):
            raise NotExpressibleError("a refused start is not supported")
        checks.only(call.expected, "readmission")
        is_restart = self.has("manager")
        if not is_restart:
            yield self.assign("stateDir", "t.TempDir()")
            nodes = literals.nodes_with_distances(self.machine(args).topology or ())
            yield self.assign("nodes", nodes)
            yield self.assign("pods", "[]*v1.Pod{}")
        yield from topology_manager(self, "nodes")
        arguments = self.arguments(
            "devices newManagerImpl",
            *('filepath.Join(stateDir, "kubelet.sock")', "nodes", "affinity"),
        )
        yield from self.attempt("manager, err", f"newManagerImpl({arguments})", "newManagerImpl")
        yield "manager.activePods = func() []*v1.Pod { return pods }"
        if is_restart:
            yield from must(f"manager.readCheckpoint({self.arguments('devices readCheckpoint')})")
            yield from self._running(args)
        provider = self.arguments("topology AddHintProvider", "manager")
        yield f"affinity.AddHintProvider({provider})"
        yield from self.devices(args.devices)

    def _running(self, args: messages.StartArgs) -> Iterator[str]:
        if args.running is None:
            return
        yield "manager.containerMap = containermap.NewContainerMap()"
        ids = []
        for pod in args.pods:
            uid = pod["metadata"]["uid"]
            for name in manifests.containers(pod):
                ids += [f"{uid}-{name}"] if name in args.running.get(uid, ()) else []
                listed = ", ".join(map(quote, (uid, name, f"{uid}-{name}")))
                yield f"manager.containerMap.Add({listed})"
        yield f"manager.containerRunningSet = sets.New({', '.join(map(quote, ids))})"

    def devices(self, devices: Sequence[messages.DeviceResource]) -> Iterator[str]:
        self._nodes = {
            one.resource: {device.id: device.numa for device in one.ids} for one in devices
        }
        for one in devices:
            if one.preferred or one.fails:
                raise NotExpressibleError("a plugin's preferences and failures are not supported")
            if not self.has("allocate"):
                yield self.assign("allocate", _ALLOCATE)
            name = quote(one.resource)
            yield (
                f"manager.endpoints[{name}] = endpointInfo{{"
                "e: &MockEndpoint{allocateFunc: allocate}}"
            )
            pointer = "*" if self.since("1.34") else ""
            listed = composite(
                f"[]{pointer}pluginapi.Device", [literals.device(d) for d in one.ids]
            )
            arguments = self.arguments("devices genericDeviceUpdateCallback", name, listed)
            yield f"manager.genericDeviceUpdateCallback({arguments})"

    def admit(self, call: PlayedCall, pod: str, manifest: Pod) -> Iterator[str]:
        checks.only(call.expected, "refused", "containers")
        if call.expected.refused == "UnexpectedAdmissionError" and "device" not in refusal(call):
            raise NotExpressibleError("a refusal by another manager is not supported")
        yield from admission(self, call, pod)
        uid = manifest["metadata"]["uid"]
        for name, container in call.expected.containers.items():
            checks.only(container, "devices")
            for resource, expected in (container.devices or {}).items():
                devices = f"manager.GetDevices({quote(uid)}, {quote(name)})[{quote(resource)}]"
                yield from self._check_devices(devices, name, resource, expected)

    def _check_devices(
        self, devices: str, holder: str, resource: str, expected: object
    ) -> Iterator[str]:
        match expected:
            case int():
                yield block(
                    f"if got := {devices}; len(got) != {expected}",
                    f't.Errorf("{holder} has devices %v, want {expected}", got)',
                )
            case DevicesExpected(numa=nodes):
                for wanted, count in Counter(NUMASet(map(int, one)) for one in nodes).items():
                    near = [
                        quote(device)
                        for device, on in self._nodes[resource].items()
                        if (on or NUMASet()) == wanted
                    ]
                    where = f"near NUMA nodes {wanted}"
                    wanted_ids = f"sets.New[string]({', '.join(near)})"
                    got = f"sets.KeySet({devices}).Intersection({wanted_ids})"
                    yield block(
                        f"if got := {got}; got.Len() != {count}",
                        f't.Errorf("{holder} has devices %v {where}, want {count}", got)',
                    )
            case _:
                raise NotExpressibleError("devices by id are not supported")

    def remove(self, call: PlayedCall, args: messages.RemoveArgs) -> Iterator[str]:
        if args.container is not None:
            raise self.unsupported(call)
        del self.on_node[args.uid]
        yield self.assign("pods", active_pods(self))

    def hints(self, call: PlayedCall, args: messages.HintsArgs) -> Iterator[str]:
        checks.only(call.expected)
        function, *subject = self.hint_provider(args)
        yield f"manager.{function}({self.arguments(f'devices {function}', *subject)})"


_ALLOCATE = block(
    "func(ids []string) (*pluginapi.AllocateResponse, error)",
    "response := &pluginapi.ContainerAllocateResponse{}",
    "responses := []*pluginapi.ContainerAllocateResponse{response}",
    "return &pluginapi.AllocateResponse{ContainerResponses: responses}, nil",
)
