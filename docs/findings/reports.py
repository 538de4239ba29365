"""Writes docs/findings/NAME.md: a report, ready to file, of every defect without a public issue.

    python docs/findings/reports.py

Each report has the sections of a Kubernetes bug report, in the words of the reference, and the Go
test of `numaproof promote --go`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.cases.machine_properties import facts_of
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.go_tests.generation import first_machine, go_test
from numaproof.conformance.go_tests.playing import play
from numaproof.inputs.plurals import plural
from numaproof.protocol import messages
from numaproof.protocol.releases import NEWEST
from numaproof.reference.deviations.defects import DEFECTS
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.conformance.go_tests.playing import PlayedCall
    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.deviations.deviation import Defect

FOLDER = Path(__file__).parent

BY_HAND = ("cores-with-equal-ids-joined",)
"""Defects of cAdvisor, which no test in the kubelet's packages shows. Their reports are written by
hand."""


def reports() -> dict[str, str]:
    """Returns the reports by the names of their files."""
    with scratch_folder() as trees:
        machines = [
            ProfileMachine(fakesys.load_profile(name), trees) for name in fakesys.bundled_profiles()
        ]
        return {
            f"{one.name}.md": _report(one, machines)
            for one in unreported()
            if one.name not in BY_HAND
        }


def unreported() -> Iterator[Defect]:
    """Yields the defects of the newest release without a public issue."""
    for defect in DEFECTS:
        if not defect.issue and NEWEST in defect.releases:
            yield defect


def _report(defect: Defect, machines: Sequence[ProfileMachine]) -> str:
    (case,) = loading.read_file(FOLDER / f"{defect.name}.yaml")
    machine = first_machine(case, machines, NEWEST)
    test = go_test(case, machine, NEWEST)
    first, last = defect.releases[0], defect.releases[-1]
    versions = last if first == last else f"{first} to {last}"
    package = test.package.rpartition("/")[2]
    return f"""\
# {package}: {case.title}

## What happened?

{defect.what}

## What did you expect to happen?

{case.title}.

> {defect.sentence}

## How can we reproduce it (as minimally and precisely as possible)?

{_example(play(case, machine, NEWEST), machine)}This test for `{test.package}` fails:

```go
{test.text}```

## Kubernetes version

{versions}
"""


def _example(calls: Sequence[PlayedCall], machine: MachineInfo) -> str:
    """Returns the machine, the kubelet's configuration and the pods; empty without a node."""
    starts = [one.args for one in calls if isinstance(one.args, messages.StartArgs)]
    pods = [one.args.pod for one in calls if isinstance(one.args, messages.AdmitArgs)]
    if not starts or not pods:
        return ""
    facts = facts_of(machine)
    counted = {
        "CPU": len(facts.all),
        "core": len(facts.cores),
        "socket": len(facts.sockets),
        "NUMA node": len(machine.topology or ()),
    }
    shown = ", ".join(plural(number, name) for name, number in counted.items())
    distinct = {yaml.safe_dump(pod["spec"]): pod for pod in pods}
    documents = [starts[0].config, *map(_resources, distinct.values())]
    text = "---\n".join(_yaml(one) for one in documents if one)
    devices = "".join(map(_devices, starts[0].devices))
    return f"On a machine with {shown}{devices}:\n\n```yaml\n{text}```\n\n"


def _devices(resource: messages.DeviceResource) -> str:
    """Returns the number of a resource's devices on each set of NUMA nodes."""
    counted = Counter(one.numa for one in resource.ids)
    placed = [
        f"{number} {f'on NUMA node {numa}' if numa is not None else 'without a NUMA node'}"
        for numa, number in counted.items()
    ]
    return f", and devices `{resource.resource}`: {', '.join(placed)}"


def _resources(pod: messages.Pod) -> dict[str, Any]:
    """Returns a pod's name and the resources of its containers."""
    spec = dict(pod["spec"])
    for key in ("initContainers", "containers"):
        if key in spec:
            spec[key] = [
                {
                    name: one[name]
                    for name in ("name", "restartPolicy", "resources")
                    if one.get(name)
                }
                for one in spec[key]
            ]
    return {"metadata": {"name": pod["metadata"]["name"]}, "spec": spec}


def _yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=100)


def main() -> None:
    """Writes all reports."""
    for name, text in reports().items():
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
