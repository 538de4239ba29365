"""Cases that read well and cannot be played: every error names the file and the line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.protocol.events import RunEnded
from numaproof.reports.files import EVENTS, read_events

if TYPE_CHECKING:
    from pathlib import Path

Command = Callable[..., Any]

HEAD = """cases:
- id: own
  title: Own
  requirements: [CPU-STATIC-001]
"""
STEPS = "  steps:\n  - state: {}\n"
MERGE = """  steps:
  - state: {}
  - merge: {nodes: [0], policy: none, providers: [{cpu: [{numa: ['1'], preferred: true}]}]}
"""
ADMIT = """  steps:
  - admit: {pod: a, spec: {containers: [{name: b, resources: {limits: 4}}]}}
"""
ON = ("--machine", "laptop-4c8t")


def config(fields: str) -> str:
    return f"  config: {{cpuManagerPolicy: static, {fields}}}\n{STEPS}"


def limits(fields: str) -> str:
    return f"  steps:\n  - admit: {{pod: a, containers: {{app: {{limits: {{{fields}}}}}}}}}\n"


@pytest.mark.parametrize(
    ("written", "line", "said"),
    [
        ("  steps: []\n", 5, "a case needs a step"),
        ("  steps:\n" + "  - state: {}\n" * 1001, 5, "1,001 steps, more than 1,000"),
        (f"  kubernetes: '?'\n{STEPS}", 5, "is not a release"),
        (f"  machines: {{where: 'cpus >'}}\n{STEPS}", 2, "case own: machines: 'cpus >'"),
        (f"  machines: {{cpus: '> x'}}\n{STEPS}", 2, "'x' is not known here"),
        ("  steps:\n  - start: {kubernetes: NaN}\n", 6, "'NaN' is not a release such as"),
        (f"  let: {{a: '1 +'}}\n{STEPS}", 2, "case own: '1 +'"),
        (f"  let: {{a: 'all < 1'}}\n{STEPS}", 2, "case own: 'all < 1'"),
        (f"  devices: {{a/b: '${{1 / 0}}'}}\n{STEPS}", 2, "case own: "),
        (
            MERGE,
            7,
            "case own, step 2: Expected a NUMA set",
        ),
        (
            ADMIT,
            6,
            "spec.containers[0].resources.limits must be a mapping",
        ),
        ("  steps:\n  - admit: {pod: a, spec: {containers: 4}}\n", 6, "must be a list"),
        (config("reservedSystemCPUs: '${cor(0)}'"), 2, "case own: 'cor' is not known here"),
        (config("kubeReserved: {cpu: '" + "9" * 501 + "'}"), 2, "more than 500 characters"),
        (config("reservedSystemCPUs: 0-1000000000000"), 2, "CPU 1000000000000; the last one"),
        (config("'${all}': 1, '${\"0-7\"}': 2"), 2, "the key '${\"0-7\"}' repeats the key '0-7'"),
        (config("'${cpus > 1}': 1"), 2, "the key '${cpus > 1}' is neither text nor a number"),
        ("  devices: {a/b: '${all}'}\n" + STEPS, 2, "case own: Expected `array`, got `str`"),
        (
            limits("cpu: two"),
            6,
            'limits.cpu: expected a quantity such as "2" or "1Gi", got "two"',
        ),
        (limits("cpu: '" + "9" * 501 + "'"), 6, "limits.cpu: expected a quantity such as"),
        ("  steps:\n  - admit: a\n", 6, "no earlier step describes the pod a"),
        (
            f"{limits('cpu: 1')}  - remove: {{pod: a, container: b}}\n",
            7,
            "remove: there is no container b of pod a on the node",
        ),
        (
            f"{limits('cpu: 1')}  - hints: {{pod: a, container: b}}\n",
            7,
            "hints: the pod has no container b",
        ),
        (
            "  steps:\n  - merge: {nodes: [0], policy: any, providers: []}\n",
            6,
            "merge: policy must be one of none, best-effort",
        ),
        (
            "  steps:\n  - merge: {nodes: [64], policy: restricted, providers: []}\n",
            6,
            "NUMA node 64 is not from 0 to 63",
        ),
        (
            "  steps:\n  - state: {}\n    expect: {pods: {a: {b: {memory: {size: 64Mi}}}}}\n",
            7,
            "steps[0].expect.pods.a.b.memory.size: expected a number, or an expression such as",
        ),
        ("  steps:\n  - admit: {pod: a, spec: {containers: [4]}}\n", 6, "mapping with a name"),
    ],
)
@pytest.mark.parametrize("way", ["replay", "check", "show"])
def test_what_is_wrong_with_a_case_is_said_with_file_and_line(
    command: Command, tmp_path: Path, way: str, written: str, line: int, said: str
) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(HEAD + written)
    given: dict[str, tuple[str | Path, ...]] = {
        "replay": ("replay", file),
        "check": ("check", "--cases", file, "--select", "own"),
        "show": ("case", "show", "own", "--cases", file),
    }
    ended = command(*given[way], *ON)
    assert ended.code == 2
    assert f"{file}:{line}: " in ended.err
    assert said in ended.err


def test_a_case_for_no_known_release_cannot_be_filled_in(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(f"{HEAD}  kubernetes: '> 1.37'\n{STEPS}")
    assert command("case", "show", "own", "--cases", file).code == 0
    ended = command("case", "show", "own", "--cases", file, *ON)
    assert ended.code == 2
    assert f"{file}:2: cases[0]: case own: kubernetes: > 1.37 includes none of" in ended.err


@pytest.mark.parametrize(
    "fields", ["featureGates: true", "cpuManagerPolicyOptions: 5", "topologyManagerPolicy: {}"]
)
def test_fields_of_any_type_reach_the_implementation(
    command: Command, tmp_path: Path, fields: str
) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(HEAD + config(fields))
    program = f"{sys.executable} -m numaproof reference"
    way = ("check", "--cases", file, "--select", "own", *ON, "--implementation", program)
    ended = command(*way)
    assert ended.code == 1
    assert "refused with config" in ended.out


@pytest.mark.parametrize("verb", ["check", "replay"])
def test_a_wrong_case_ends_the_stream_of_events_with_the_reason(
    command: Command, tmp_path: Path, verb: str
) -> None:
    case = tmp_path / "own.yaml"
    case.write_text(f"{HEAD}  steps:\n  - state: {{}}\n    expect: {{shared: '${{al${{x}}l}}'}}\n")
    asked = ("check", "--cases", case, "--select", "own", *ON)
    if verb == "replay":
        asked = ("replay", case, *ON)

    ended = command(*asked, "--out", tmp_path / "out")

    assert ended.code == 2
    assert f"{case}:" in ended.err
    *_, last = read_events(tmp_path / "out" / EVENTS)
    assert isinstance(last, RunEnded)
    assert not last.complete
    assert last.message
    assert last.message in ended.err


@pytest.mark.parametrize("nodes", ["'${cpus}'", "{0: '${cpus}'}", "{0: {cores: '${cpus}'}}"])
def test_a_machine_that_is_expected_has_mappings(
    command: Command, tmp_path: Path, nodes: str
) -> None:
    file = tmp_path / "own.yaml"
    steps = f"  steps:\n  - discover: {{}}\n    expect: {{machine: {{nodes: {nodes}}}}}\n"
    file.write_text(f"{HEAD}{steps}")
    ended = command("replay", file, *ON)
    assert ended.code == 2
    assert "must be a mapping, not 8" in ended.err


def test_nothing_but_the_error_is_said_of_an_odd_expression(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(f"{HEAD}  let: {{a: '1if 1else 2'}}\n{STEPS}")
    ended = command("replay", file, *ON)
    assert ended.code == 2
    assert "SyntaxWarning" not in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_case_that_goes_on_after_a_start_that_may_be_refused_is_wrong_itself(
    command: Command, program: Callable[[str], str], tmp_path: Path
) -> None:
    file = tmp_path / "own.yaml"
    start = "start: {config: {cpuManagerPolicy: static, kubeReserved: {}}}"
    file.write_text(f"{HEAD}  steps:\n  - {start}\n    expect: anything\n  - state: {{}}\n")
    for way in ((), ("--implementation", program("answer(request)"))):
        ended = command("replay", file, *ON, *way)
        assert ended.code == 2
        assert f"{file}:8: " in ended.err
        assert "state: no earlier step has to start the node" in ended.err
