"""Tests in package ``memorymanager``: the static policy with the documented affinity."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from numaproof.conformance.cases import checkpoints
from numaproof.conformance.go_tests import checks, literals
from numaproof.conformance.go_tests.checks import NotExpressibleError
from numaproof.conformance.go_tests.form import (
    ContainerForm,
    allocation,
    given_affinity,
    must,
    refusal,
)
from numaproof.conformance.go_tests.syntax import block, composite, inline, quote, raw
from numaproof.protocol import codec, messages
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.conformance.go_tests.playing import PlayedCall
    from numaproof.protocol.messages import Pod, Provider

_FILE = "memory_manager_state"


class MemoryForm(ContainerForm):
    """The static policy by itself."""

    package: ClassVar[str] = "cm/memorymanager"
    _in_file = False

    def start(self, call: PlayedCall, args: messages.StartArgs) -> Iterator[str]:
        checks.only(call.expected, "refused", "memory", "readmission")
        is_restart = self.has("policy")
        if not is_restart:
            yield self.assign("machine", literals.nodes_with_memory(self.machine(args)))
        reserved = composite("systemReservedMemory", self._reserved())
        fake = f"topologymanager.NewFakeManager({self.arguments('topology NewFakeManager')})"
        arguments = self.arguments("memory NewPolicyStatic", "machine", reserved, fake)
        yield from self.attempt("policy, err", f"NewPolicyStatic({arguments})", "NewPolicyStatic")
        start = f"policy.Start({self.arguments('memory Start', 'st')})"
        if call.expected.refused:
            if not self._in_file:
                raise NotExpressibleError("a start refused without a checkpoint is not supported")
            yield self.assign("st, err", self._state())
            yield block("if err == nil", f"err = {start}")
            yield block("if err == nil", 't.Errorf("Start() succeeded")')
            return
        if self._in_file:
            yield from self.attempt("st, err", self._state(), "NewCheckpointState")
        elif not is_restart:
            yield self.assign("st", self._state())
        yield from must(start)
        if call.expected.memory is not None:
            yield from self._allocatable(call.expected.memory)

    def _reserved(self) -> Iterator[tuple[str, str]]:
        for one in self.config.get("reservedMemory") or ():
            amounts = [
                (
                    "v1.ResourceMemory" if name == "memory" else quote(name),
                    str(int(quantity.parse(amount))),
                )
                for name, amount in (one.get("limits") or {}).items()
            ]
            yield str(one.get("numaNode", 0)), inline("", amounts)

    def _state(self) -> str:
        if not self._in_file:
            return f"state.NewMemoryState({self.arguments('memory NewMemoryState')})"
        file = ("stateDir", quote(_FILE), "policy.Name()")
        return f"state.NewCheckpointState({self.arguments('memory NewCheckpointState', *file)})"

    def _allocatable(self, expected: object) -> Iterator[str]:
        if not isinstance(expected, dict):
            raise NotExpressibleError("allocatable memory by node is not supported")
        yield self.assign("allocatable", "map[v1.ResourceName]uint64{}")
        read = f"policy.GetAllocatableMemory({self.arguments('memory GetAllocatableMemory', 'st')})"
        yield block(f"for _, one := range {read}", "allocatable[one.Type] += one.Size")
        sizes = [(quote(name), str(size)) for name, size in expected.items()]
        yield self.assign("wanted", inline("map[v1.ResourceName]uint64", sizes))
        yield block(
            "if !reflect.DeepEqual(allocatable, wanted)",
            't.Errorf("the allocatable memory is %v, want %v", allocatable, wanted)',
        )

    def admit(self, call: PlayedCall, pod: str, manifest: Pod) -> Iterator[str]:
        checks.only(call.expected, "refused", "containers")
        for one in call.expected.containers.values():
            checks.only(one)
        if call.expected.refused and "[memorymanager]" not in refusal(call):
            raise NotExpressibleError("a refusal by another manager is not supported")
        yield from given_affinity(self, call)
        yield from allocation(self, call, pod, manifest, "memory Allocate")

    def removal(self, uid: str, container: str) -> str:
        arguments = self.arguments("memory RemoveContainer", "st", quote(uid), quote(container))
        return f"policy.RemoveContainer({arguments})"

    def hints(self, call: PlayedCall, args: messages.HintsArgs) -> Iterator[str]:
        checks.only(call.expected, "hints")
        function, *subject = self.hint_provider(args)
        read = f"policy.{function}({self.arguments(f'memory {function}', 'st', *subject)})"
        wanted = self._memory_hints(call.expected.hints or {})
        if not wanted:
            unwanted = f't.Errorf("{function}() returned %v, want no hints", got)'
            yield block(f"if got := {read}; len(got) != 0", unwanted)
            return
        yield self.assign("want", literals.hints(wanted, "newNUMAAffinity", "topologymanager."))
        yield block(
            f"if got := {read}; !reflect.DeepEqual(got, want)",
            f't.Errorf("{function}() returned %v, want %v", got, want)',
        )

    def _memory_hints(self, hints: Mapping[Provider, object]) -> messages.ProviderHints:
        if {*hints} != {"memory"}:
            raise NotExpressibleError("only hints of the Memory Manager are supported")
        return codec.from_plain(hints["memory"], messages.ProviderHints)

    def other(self, call: PlayedCall) -> Iterator[str]:
        tamper = call.step.tamper if call.step else None
        if tamper is None or tamper.how != "write" or tamper.file != _FILE:
            yield from super().other(call)
            return
        self._in_file = True
        text = tamper.text if tamper.checkpoint is None else checkpoints.text(tamper.checkpoint)
        yield self.assign("stateDir", "t.TempDir()")
        file = f"filepath.Join(stateDir, {quote(_FILE)})"
        yield from must(f"os.WriteFile({file}, []byte({raw(text)}), 0o600)")
