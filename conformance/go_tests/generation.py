"""Writes a case as a Go test in the style of the kubelet's own package tests."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.conformance.execution import runner
from numaproof.conformance.execution.run import reference_target
from numaproof.conformance.go_tests.checks import NotExpressibleError
from numaproof.conformance.go_tests.cpu import AdmittingCPUForm, CPUForm
from numaproof.conformance.go_tests.devices import DeviceForm
from numaproof.conformance.go_tests.gates import GatesForm
from numaproof.conformance.go_tests.memory import MemoryForm
from numaproof.conformance.go_tests.merge import MergeForm
from numaproof.conformance.go_tests.playing import PlayedCall, affinities, config_of, play
from numaproof.conformance.go_tests.signatures import since
from numaproof.conformance.go_tests.syntax import camel, indent, quote
from numaproof.conformance.judging.baselines import DOCUMENTED
from numaproof.protocol import messages
from numaproof.reference.deviations.defects import DEFECTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.machines import ProfileMachine
    from numaproof.conformance.go_tests.form import Form
    from numaproof.protocol.machine import MachineInfo

_WIDTH = 100

_IMPORTS = {
    "errors": "errors",
    "os": "os",
    "filepath": "path/filepath",
    "reflect": "reflect",
    "sort": "sort",
    "cadvisorapi": "",
    "v1": "k8s.io/api/core/v1",
    "resource": "k8s.io/apimachinery/pkg/api/resource",
    "metav1": "k8s.io/apimachinery/pkg/apis/meta/v1",
    "sets": "k8s.io/apimachinery/pkg/util/sets",
    "utilfeature": "k8s.io/apiserver/pkg/util/feature",
    "featuregatetesting": "k8s.io/component-base/featuregate/testing",
    "testutil": "k8s.io/component-base/metrics/testutil",
    "v1beta1": "k8s.io/kubelet/config/v1beta1",
    "pluginapi": "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1",
    "features": "k8s.io/kubernetes/pkg/features",
    "admission": "k8s.io/kubernetes/pkg/kubelet/cm/admission",
    "containermap": "k8s.io/kubernetes/pkg/kubelet/cm/containermap",
    "state": "",
    "topology": "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology",
    "topologymanager": "k8s.io/kubernetes/pkg/kubelet/cm/topologymanager",
    "bitmask": "k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask",
    "lifecycle": "k8s.io/kubernetes/pkg/kubelet/lifecycle",
    "metrics": "k8s.io/kubernetes/pkg/kubelet/metrics",
    "ktesting": "k8s.io/kubernetes/test/utils/ktesting",
    "cpuset": "k8s.io/utils/cpuset",
    "ptr": "k8s.io/utils/ptr",
}
"""The packages that tests use, by the names under which they import them, in `gofmt`'s order."""


@dataclass(frozen=True)
class GoTest:
    """A Go test.

    Attributes:
        package: the folder of its package in a checkout of Kubernetes.
        function: the name of its function.
        text: the contents of its file.
    """

    package: str
    function: str
    text: str


def go_test(case: Case, machine: MachineInfo, kubernetes: str) -> GoTest:
    """Writes a case as a test for a release's packages; it asserts the documented answers.

    Raises:
        CaseError: the case can't be played.
        NotExpressibleError: no single package of the kubelet shows what the case expects.
    """
    if case.tree or any(step.start and step.start.tree for step in case.steps):
        raise NotExpressibleError("`tree`: cAdvisor reads the machine's files, not a manager")
    if case.check_node:
        raise NotExpressibleError("`check_node`: no manager compares pods with the node")
    calls = play(case, machine, kubernetes)
    form = _form(calls)(calls, kubernetes)
    body = form.body()
    context = _context(body)
    name = f"Test{camel(case.id)}"
    package = form.package.rpartition("/")[2]
    used = f"{context}{body}"
    parts = [
        f"package {package}",
        _imports(used, form, kubernetes),
        f"{_comment(case)}func {name}(t *testing.T) {{\n{indent(context + body)}\n}}\n",
    ]
    return GoTest(f"pkg/kubelet/{form.package}", name, "\n\n".join(parts))


def first_machine(case: Case, machines: Sequence[ProfileMachine], kubernetes: str) -> MachineInfo:
    """Returns the first machine that a case applies to.

    Raises:
        NotExpressibleError: it applies to none in this release.
    """
    runs = runner.select([case], machines, reference_target(kubernetes, DOCUMENTED))
    if not runs:
        raise NotExpressibleError(f"the case applies to no machine with Kubernetes {kubernetes}")
    return runs[0].info


def _form(calls: Sequence[PlayedCall]) -> type[Form]:
    """Chooses the package whose manager gives the answers that the case expects."""
    config = config_of(calls)
    if any(isinstance(one.args, messages.MergeArgs) for one in calls):
        return MergeForm
    if any(one.expected.refused == "config" for one in calls):
        return GatesForm
    is_cpu = config.get("cpuManagerPolicy") == "static" or _assigns(calls)
    is_memory = config.get("memoryManagerPolicy") == "Static"
    if any(_expects_devices(one) for one in calls) or not (is_cpu or is_memory):
        return DeviceForm
    if is_memory:
        return MemoryForm
    return AdmittingCPUForm if _needs_hints(calls) else CPUForm


def _assigns(calls: Sequence[PlayedCall]) -> bool:
    return any(isinstance(one.args, messages.AssignArgs) for one in calls)


def _expects_devices(call: PlayedCall) -> bool:
    return any(one.devices for one in call.expected.containers.values())


def _needs_hints(calls: Sequence[PlayedCall]) -> bool:
    """Whether the Topology Manager's part in the admissions is what the case shows."""
    config = config_of(calls)
    if config.get("topologyManagerPolicy", "none") == "none":
        return False
    return config.get("topologyManagerScope") == "pod" or any(
        one.expected.refused == "TopologyAffinityError"
        or any(container.affinity for container in one.expected.containers.values())
        or affinities(one.answer) != affinities(one.kubelet_answer)
        for one in calls
    )


def _context(body: str) -> str:
    """Returns the creation of the logger and the context that the body uses."""
    names = [name if re.search(rf"\b{name}\b", body) else "_" for name in ("logger", "tCtx")]
    return f"{', '.join(names)} := ktesting.NewTestContext(t)\n" if {*names} != {"_"} else ""


def _imports(text: str, form: Form, kubernetes: str) -> str:
    manager = "memorymanager" if form.package.endswith("memorymanager") else "cpumanager"
    paths = _IMPORTS | {
        "cadvisorapi": (
            "github.com/google/cadvisor/lib/model"
            if since(kubernetes, "1.37")
            else "github.com/google/cadvisor/info/v1"
        ),
        "state": f"k8s.io/kubernetes/pkg/kubelet/cm/{manager}/state",
    }
    used = {name: path for name, path in paths.items() if re.search(rf"\b{name}\.", text)}
    standard = [one for one in used.values() if "." not in one.partition("/")[0]]
    lines = [f"\t{quote(one)}" for one in (*standard, "testing")]
    others = [
        f"\t{'' if path.endswith(f'/{name}') and name != 'v1' else f'{name} '}{quote(path)}"
        for name, path in used.items()
        if path not in standard
    ]
    return "\n".join(["import (", *lines, "", *others, ")"])


def _comment(case: Case) -> str:
    paragraphs = [f"{case.title}."]
    for defect in DEFECTS:
        if defect.name == case.defect:
            paragraphs += [f'Documentation: "{defect.sentence}"'] if defect.sentence else []
            first, *_, last = (defect.releases[0], *defect.releases)
            span = first if first == last else f"{first} to {last}"
            issue = f" See {defect.issue}." if defect.issue else ""
            paragraphs.append(f"Fails with Kubernetes {span}: {defect.what}{issue}")
    return "//\n".join(_lines(paragraphs))


def _lines(paragraphs: Sequence[str]) -> Iterator[str]:
    for paragraph in paragraphs:
        lines = textwrap.wrap(paragraph, _WIDTH - 3, break_long_words=False, break_on_hyphens=False)
        yield "".join(f"// {line}\n" for line in lines)
