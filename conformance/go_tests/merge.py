"""Tests in package ``topologymanager``: the policies, which merge hints."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from numaproof.conformance.go_tests import checks, literals
from numaproof.conformance.go_tests.checks import NotExpressibleError
from numaproof.conformance.go_tests.form import Form
from numaproof.conformance.go_tests.syntax import block, composite, string_map
from numaproof.protocol import codec, messages
from numaproof.protocol.machine import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.go_tests.playing import PlayedCall

_POLICIES = {
    "best-effort": "NewBestEffortPolicy",
    "restricted": "NewRestrictedPolicy",
    "single-numa-node": "NewSingleNumaNodePolicy",
}


class MergeForm(Form):
    """A policy that merges the providers' hints."""

    package: ClassVar[str] = "cm/topologymanager"

    def other(self, call: PlayedCall) -> Iterator[str]:
        args = call.args
        if not isinstance(args, messages.MergeArgs):
            yield from super().other(call)
            return
        checks.only(call.expected, "hint", "admit")
        if args.policy not in _POLICIES:
            raise NotExpressibleError(f"the policy `{args.policy}` is not supported")
        options = self.arguments("topology NewPolicyOptions", string_map(args.options))
        made = f"NewPolicyOptions({options})"
        yield from self.attempt("options, err", made, "NewPolicyOptions")
        nodes = [
            Node(number, distances=(args.distances or {}).get(str(number))) for number in args.nodes
        ]
        listed = literals.nodes_with_distances(nodes)
        yield from self.attempt("numaInfo, err", f"NewNUMAInfo({listed}, options)", "NewNUMAInfo")
        yield self.assign("policy", f"{_POLICIES[args.policy]}(numaInfo, options)")
        providers = [literals.hints(one or {}, "NewTestBitMask", "") for one in args.providers]
        yield self.assign("hints", composite("[]map[string][]TopologyHint", providers))
        merge = f"policy.Merge({self.arguments('topology Merge', 'hints')})"
        names = (
            "got" if call.expected.hint else "_",
            "admit" if call.expected.admit is not None else "_",
        )
        yield self.assign(", ".join(names), merge)
        if call.expected.admit is not None:
            wanted = str(call.expected.admit).lower()
            yield block(f"if admit != {wanted}", f't.Errorf("admit is %v, want {wanted}", admit)')
        if call.expected.hint is not None:
            hint = codec.from_plain(call.expected.hint, messages.Hint)
            yield self.assign("want", f"TopologyHint{literals.hint(hint, 'NewTestBitMask')}")
            yield block("if !got.IsEqual(want)", 't.Errorf("the hint is %v, want %v", got, want)')
