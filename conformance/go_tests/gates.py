"""Tests in package ``v1beta1``: the defaults of a configuration with feature gates."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from numaproof.conformance.go_tests import checks
from numaproof.conformance.go_tests.checks import NotExpressibleError
from numaproof.conformance.go_tests.form import Form
from numaproof.conformance.go_tests.syntax import block, inline, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.go_tests.playing import PlayedCall
    from numaproof.protocol import messages


class GatesForm(Form):
    """A configuration whose feature gates must be refused, after its defaults are set."""

    package: ClassVar[str] = "apis/config/v1beta1"

    def gates(self, *more: str) -> Iterator[str]:
        del more
        yield from ()

    def start(self, call: PlayedCall, args: messages.StartArgs) -> Iterator[str]:
        checks.only(call.expected, "refused")
        if call.expected.refused != "config" or {*args.config} != {"featureGates"}:
            raise NotExpressibleError("only refused feature gates are supported")
        gates = [(quote(key), str(on).lower()) for key, on in args.config["featureGates"].items()]
        yield self.assign("gates", inline("map[string]bool", gates))
        fields = inline("&v1beta1.KubeletConfiguration", [("FeatureGates", "gates")])
        yield f"SetDefaults_KubeletConfiguration({fields})"
        known = "utilfeature.DefaultMutableFeatureGate.DeepCopy()"
        yield block(
            f"if err := {known}.SetFromMap(gates); err == nil",
            't.Errorf("SetFromMap(%v) succeeded", gates)',
        )
