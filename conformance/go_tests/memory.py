"""Tests in package ``memorymanager``: the static policy with the documented affinity."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from numaproof.conformance.cases import manifests
from numaproof.conformance.go_tests import literals
from numaproof.conformance.go_tests.checks import NotExpressibleError
from numaproof.conformance.go_tests.form import Form, allocation, given_affinity, must
from numaproof.conformance.go_tests.syntax import block, braced, inline, quoted
from numaproof.protocol import codec, messages
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.conformance.go_tests.playing import PlayedCall
    from numaproof.protocol.messages import Pod

_FILE = "memory_manager_state"


class MemoryForm(Form):
    """The static policy by itself."""

    package: ClassVar[str] = "cm/memorymanager"
    _in_file = False

    def start(self, call: PlayedCall, args: messages.StartArgs) -> Iterator[str]:
        if args.machine is None:
            raise NotExpressibleError("a start that discovers the machine is not supported")
        self.only(call.expected, "refused", "memory", "readmission")
        is_restart = "policy" in self._declared
        if not is_restart:
            yield self.assign("machine", literals.nodes_with_memory(args.machine))
        reserved = braced("systemReservedMemory", self._reserved())
        fake = f"topologymanager.NewFakeManager({self.arguments('topology NewFakeManager')})"
        arguments = self.arguments("memory NewPolicyStatic", "machine", reserved, fake)
        yield from self.tried("policy, err", f"NewPolicyStatic({arguments})", "NewPolicyStatic")
        if not is_restart:
            yield from self._state()
        start = f"policy.Start({self.arguments('memory Start', 'st')})"
        if call.expected.refused is None:
            yield from must(start)
        else:
            yield block(f"if err := {start}; err == nil", 't.Errorf("Start() succeeded")')
        if call.expected.memory is not None:
            yield from self._allocatable(call.expected.memory)

    def _reserved(self) -> Iterator[tuple[str, str]]:
        for one in self.config.get("reservedMemory") or ():
            amounts = [
                (
                    "v1.ResourceMemory" if name == "memory" else quoted(name),
                    str(int(quantity.parse(amount))),
                )
                for name, amount in one["limits"].items()
            ]
            yield str(one["numaNode"]), inline("", amounts)

    def _state(self) -> Iterator[str]:
        if not self._in_file:
            made = f"state.NewMemoryState({self.arguments('memory NewMemoryState')})"
            yield self.assign("st", made)
            return
        arguments = self.arguments(
            "memory NewCheckpointState", "stateDir", quoted(_FILE), "policy.Name()"
        )
        call = f"state.NewCheckpointState({arguments})"
        yield from self.tried("st, err", call, "NewCheckpointState")

    def _allocatable(self, expected: object) -> Iterator[str]:
        if not isinstance(expected, dict):
            raise NotExpressibleError("allocatable memory by node is not supported")
        yield self.assign("allocatable", "map[v1.ResourceName]uint64{}")
        read = f"policy.GetAllocatableMemory({self.arguments('memory GetAllocatableMemory', 'st')})"
        yield block(
            f"for _, one := range {read}", "allocatable[one.Type] += one.Size"
        )
        for name, size in expected.items():
            got = f"allocatable[{quoted(name)}]"
            yield block(
                f"if {got} != {size}",
                f't.Errorf("%d bytes of {name} are allocatable, want {size}", {got})',
            )

    def admit(self, call: PlayedCall, pod: str, manifest: Pod) -> Iterator[str]:
        self.only(call.expected, "refused", "containers")
        for one in call.expected.containers.values():
            if one.memory is not None or one.devices or one.exclusive is not None:
                raise NotExpressibleError("what a container gets is not supported")
        yield from given_affinity(self, call)
        yield from allocation(self, call, pod, manifest, "memory Allocate")

    def remove(self, call: PlayedCall, args: messages.RemoveArgs) -> Iterator[str]:
        del call
        names = self.containers(args.uid) if args.container is None else (args.container,)
        for name in names:
            arguments = self.arguments(
                "memory RemoveContainer", "st", quoted(args.uid), quoted(name)
            )
            yield f"policy.RemoveContainer({arguments})"
        if args.container is None:
            self.on_node.pop(args.uid, None)

    def hints(self, call: PlayedCall, args: messages.HintsArgs) -> Iterator[str]:
        self.only(call.expected, "hints")
        pod = self.variable(args.pod["metadata"]["uid"])
        function, subject = "GetPodTopologyHints", (pod,)
        if args.container is not None:
            number = manifests.containers(args.pod).index(args.container)
            function, subject = "GetTopologyHints", (pod, f"&{pod}.Spec.Containers[{number}]")
        arguments = self.arguments(f"memory {function}", "st", *subject)
        read = f"policy.{function}({arguments})"
        wanted = self._wanted(call.expected.hints or {})
        yield self.assign("want", literals.hints(wanted, "newNUMAAffinity", "topologymanager."))
        yield block(
            f"if got := {read}; !reflect.DeepEqual(got, want)",
            f't.Errorf("{function}() returned %v, want %v", got, want)',
        )

    def _wanted(self, hints: Mapping[str, object]) -> messages.ProviderHints:
        if {*hints} != {"memory"}:
            raise NotExpressibleError("only hints of the Memory Manager are supported")
        return codec.from_plain(hints["memory"], messages.ProviderHints)

    def other(self, call: PlayedCall) -> Iterator[str]:
        tamper = call.step.tamper if call.step else None
        if tamper is None or tamper.how != "write" or tamper.file != _FILE:
            yield from super().other(call)
            return
        self._in_file = True
        yield self.assign("stateDir", "t.TempDir()")
        file = f"filepath.Join(stateDir, {quoted(_FILE)})"
        yield from must(f"os.WriteFile({file}, []byte(`{tamper.text}`), 0o600)")
