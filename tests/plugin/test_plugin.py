"""The pytest plugin, in projects' test runs with real programs and real failures."""

from __future__ import annotations

import importlib
import shlex
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.checkout import ROOT, modules

pytest_plugins = ("pytester",)

REFERENCE = shlex.join([sys.executable, "-m", "numaproof", "reference"])

SEEDED = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from quality.catalogue import BUGS
from numaproof.reference.implementation import Reference
from numaproof.reference.server import serve

(bug,) = (one for one in BUGS if one.id == sys.argv[1])
with bug.inject():
    serve(sys.stdin.buffer, sys.stdout.buffer, Reference())
"""

TESTS = """
import pytest
from hypothesis import Phase, given, settings, strategies as st
from numaproof.conformance.fuzzing import strategies

@pytest.mark.numaproof(select="pool-*", exclude="pool-always-only-*", machine="laptop-4c8t")
def test_table(numaproof, numaproof_case):
    numaproof.check(numaproof_case)

@settings(max_examples=10, deadline=None, derandomize=True, database=None,
          phases=[Phase.generate])
@given(data=st.data())
def test_scenarios(numaproof, data):
    numaproof.play(data.draw(numaproof.scenarios()))
"""

Run = Callable[..., pytest.RunResult]


@pytest.fixture(scope="module", autouse=True)
def import_modules() -> None:
    """All modules, imported once instead of in each run in this process."""
    for name in modules():
        if not name.startswith(("numaproof.campaign", "numaproof.__main__")):
            importlib.import_module(name)


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Runs pytest with tests and a configuration, in a separate process if requested."""

    def make(
        tests: str,
        *args: str,
        implementation: str = REFERENCE,
        alone: bool = False,
        **ini: str,
    ) -> pytest.RunResult:
        lines = [f"numaproof_{name} = {said}\n" for name, said in ini.items()]
        if implementation:
            lines.append(f"numaproof_implementation = {implementation}\n")
        pytester.makeini("[pytest]\naddopts = --strict-markers\n" + "".join(lines))
        pytester.makepyfile(test_it=textwrap.dedent(tests))
        words = ("-p", "no:cacheprovider", *args)
        if alone:
            return pytester.runpytest_subprocess(*words, timeout=300)
        return pytester.runpytest_inprocess(*words)

    return make


@pytest.fixture
def buggy_command(pytester: pytest.Pytester) -> Callable[[str], str]:
    """Returns the command of a reference with a bug, relative to the run's root."""
    pytester.makepyfile(seeded=SEEDED)
    return lambda bug: f"{shlex.quote(sys.executable)} {{rootdir}}/seeded.py {bug}"


def test_a_correct_program_passes_the_cases_and_the_scenarios(run: Run) -> None:
    ended = run(TESTS, "-v")
    ended.assert_outcomes(passed=9)
    ended.stdout.fnmatch_lines(
        ["*test_table?pool-begins-with-all-cpus-laptop-4c8t? PASSED*", "*test_scenarios PASSED*"]
    )


def test_a_wrong_program_fails_with_the_relevant_calls(
    run: Run, buggy_command: Callable[[str], str]
) -> None:
    buggy = buggy_command("exclusive-cpus-stay-in-the-shared-pool")
    ended = run(TESTS, "-k", "pool-serves or shrinks", implementation=buggy)
    assert ended.ret == pytest.ExitCode.TESTS_FAILED
    ended.stdout.fnmatch_lines(
        [
            "*AssertionError: the shared pool also contains CPU* of uid-*",
            "*pool-shrinks-at-admission on laptop-4c8t: *",
            "*   1 start {*(machine with CPUs 8, NUMA nodes 1)*",
            "*✗ *",
            "*✗ fail",
        ]
    )
    assert "plugin/checking.py" not in ended.stdout.str()


@pytest.mark.slow
def test_a_failing_scenario_can_be_saved_as_a_case(
    run: Run, buggy_command: Callable[[str], str], pytester: pytest.Pytester
) -> None:
    buggy = buggy_command("removed-pods-keep-their-cpus")
    ended = run(TESTS, "-k", "scenarios", implementation=buggy)
    ended.assert_outcomes(failed=1, deselected=8)
    # In CI, pytest's summary repeats the message.
    lines = [line[1:] for line in ended.outlines if line.startswith("E ")]
    begin = next(number for number, line in enumerate(lines) if line.strip() == "cases:")
    kept, *_ = textwrap.dedent("\n".join(lines[begin:])).split("\n\n")
    Path("kept.yaml").write_text("\n".join(line for line in kept.splitlines() if line[:1] in "c- "))
    command = buggy.replace("{rootdir}", str(pytester.path))
    replay = [sys.executable, "-m", "numaproof", "replay", "kept.yaml"]
    assert pytester.run(*replay).ret == 0
    assert pytester.run(*replay, "--implementation", command).ret == 1


def test_an_unused_plugin_imports_nothing(run: Run) -> None:
    ended = run(
        """
        import sys

        def test_nothing_is_imported():
            mine = [name for name in sys.modules if name.startswith("numaproof")]
            assert mine == ["numaproof", "numaproof.plugin"]
            assert "msgspec" not in sys.modules
        """,
        implementation="",
        alone=True,
    )
    ended.assert_outcomes(passed=1)


ONE = """
def test_it(numaproof):
    assert numaproof.capabilities.has("start")
"""


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"implementation": ""}, "no program to test: set numaproof_implementation in"),
        ({"implementation": "lost-program"}, "*numaproof: *lost-program*"),
        ({"implementation": "true"}, "*'true' did not answer hello: the program ended at hello*"),
        ({"level": "all"}, "invalid numaproof_level 'all' (expected one of invariants, admission*"),
        ({"kubernetes": "1.12"}, "invalid numaproof_kubernetes '1.12' (expected one of 1.30*"),
        (
            {"timeout": "soon"},
            "numaproof: Invalid value: 'soon' is not a duration; expected one such as 90s*",
        ),
    ],
)
def test_a_missing_program_is_reported_without_a_traceback(
    run: Run, options: dict[str, str], complaint: str
) -> None:
    ended = run(ONE, **options)
    ended.assert_outcomes(errors=1)
    ended.stdout.fnmatch_lines([f"*{complaint.strip('*')}*"])
    assert "Traceback" not in ended.stdout.str()


def test_the_command_line_overrides_the_configuration_file(run: Run) -> None:
    tests = """
    def test_it(numaproof):
        assert numaproof.target.level == "admission"
        assert numaproof.target.kubernetes == "1.34"
    """
    args = ("--numaproof-implementation", REFERENCE, "--numaproof-level", "admission")
    ended = run(tests, *args, implementation="lost", level="kubelet", kubernetes="1.34")
    ended.assert_outcomes(passed=1)


def test_a_project_can_name_its_program_in_a_fixture(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        f"""
        import pytest

        @pytest.fixture(scope="session")
        def numaproof_implementation():
            return {REFERENCE!r}
        """
    )
    run(ONE, implementation="").assert_outcomes(passed=1)


OWN = """\
cases:
- id: own-high
  title: Of a level that is not claimed
  requirements: []
  level: kubelet
  machines: {names: [laptop-4c8t]}
  steps: [{start: {}}]
- id: own-new
  title: Of another release
  requirements: []
  kubernetes: ">= 1.36"
  machines: {names: [laptop-4c8t]}
  steps: [{start: {}}]
- id: own-defect
  title: That a kubelet is known to fail
  requirements: []
  level: invariants
  defect: init-cpus-not-reused
  machines: {names: [laptop-4c8t]}
  config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1"}}
  steps:
  - admit:
      pod: a
      init: {setup: {limits: {cpu: 1, memory: 64Mi}}}
      containers: {app: {limits: {cpu: 2, memory: 64Mi}}}
  - state: {}
    expect: {shared: 6}
"""


def test_own_cases_can_be_skipped_or_expected_to_fail(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "own.yaml").write_text(OWN)
    tests = """
    import pytest

    @pytest.mark.numaproof(cases="own.yaml")
    def test_own(numaproof, numaproof_case):
        numaproof.check(numaproof_case)
    """
    ended = run(tests, "-rsx", kubernetes="1.35", level="placement")
    ended.assert_outcomes(skipped=2, xfailed=1)
    ended.stdout.fnmatch_lines_random(
        [
            "SKIPPED*own-high is for level kubelet, but the program claims placement",
            "SKIPPED*own-new is for Kubernetes >= 1.36, not 1.35",
            "XFAIL*init-cpus-not-reused: *",
        ]
    )


LESS = """
import sys
from numaproof.protocol import codec, messages
from numaproof.reference.implementation import Reference
import msgspec
reference = Reference()
for line in sys.stdin.buffer:
    request = codec.decode(line, codec.Request)
    reply = reference.call(request.op, codec.decode_args(request))
    if request.op == "hello":
        policies = messages.Policies(cpu=("none",))
        reply = msgspec.structs.replace(
            reply, policies=policies, options=messages.Options(), features=None
        )
    sys.stdout.buffer.write(codec.encode_answer(request.id, reply))
    sys.stdout.flush()
"""


@pytest.mark.slow
def test_unclaimed_calls_are_skipped_and_not_counted(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(less=LESS)
    tests = """
    import pytest
    from hypothesis import HealthCheck, given, settings
    from numaproof.conformance.fuzzing.strategies import scenarios

    @pytest.mark.numaproof(select="static-gives-what-the-limit-says", machine="laptop-4c8t")
    def test_table(numaproof, numaproof_case):
        numaproof.check(numaproof_case)

    @settings(max_examples=2, deadline=None, derandomize=True, database=None,
              suppress_health_check=list(HealthCheck))
    @given(scenario=scenarios())
    def test_scenarios(numaproof, scenario):
        numaproof.play(scenario)
    """
    ended = run(tests, "-rs", implementation=f"{shlex.quote(sys.executable)} {{rootdir}}/less.py")
    ended.assert_outcomes(passed=1, skipped=1)
    ended.stdout.fnmatch_lines(["SKIPPED*does not have CPU Manager policy static"])


WRONG = """cases:
- id: own
  title: Own
  requirements: [CPU-STATIC-001]
  machines: {where: "cpus >"}
  steps:
  - state: {}
"""


WRONG_MARKERS = {
    "selects='*'": "unknown argument selects of the `numaproof` marker (expected select, exclude",
    "select='lost-*'": "no case matches select='lost-?'",
    "exclude=['area:memry']": "no case matches exclude='area:memry'*'area:memory'",
    "select='area:memory', machine='vm-1-cpu', exclude='mem-*'": "no selected case applies",
    "cases=['lost.yaml']": "lost.yaml: ",
    "cases=['wrong.yaml']": "wrong.yaml:2: *case own: machines: 'cpus >'",
}


def test_a_wrong_marker_is_reported_at_collection(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "wrong.yaml").write_text(WRONG, encoding="utf-8")
    tests = """
    import pytest

    @pytest.mark.numaproof({})
    def test_own(numaproof, numaproof_case):
        numaproof.check(numaproof_case)
    """
    marked = {
        f"test_{number}": textwrap.dedent(tests.format(marker))
        for number, marker in enumerate(WRONG_MARKERS)
    }
    pytester.makepyfile(**marked)
    ended = run("")
    ended.assert_outcomes(errors=len(WRONG_MARKERS))
    ended.stdout.fnmatch_lines_random([f"*{said}*" for said in WRONG_MARKERS.values()])


def test_xdist_workers_have_separate_programs(run: Run) -> None:
    ended = run(TESTS, "-n", "2", "-k", "pool-begins or pool-serves", alone=True)
    assert ended.ret == pytest.ExitCode.OK


def test_a_scenario_without_a_machine_is_a_helpful_error(run: Run) -> None:
    tests = """
    from numaproof.conformance.cases.loading import bundled_cases

    def test_it(numaproof):
        numaproof.play(bundled_cases()[0])
    """
    ended = run(tests)
    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines(["*defines no machine; use the `numaproof` marker to choose one*"])


KNOWN = """
known_failures:
- {case: pool-shrinks-at-admission, signature: SIGNATURE, reason: being fixed}
- {case: pool-begins-with-all-cpus, machine: laptop-4c8t, signature: gone, reason: it was so}
- {case: scenario, signature: SIGNATURE, reason: the same}
"""


def test_known_failures_do_not_excuse_other_causes(
    run: Run, buggy_command: Callable[[str], str], pytester: pytest.Pytester
) -> None:
    bug = buggy_command("exclusive-cpus-stay-in-the-shared-pool")
    entry = "{case: scenario, signature: invariant exclusive-count, reason: being fixed}"
    pytester.makefile(".yaml", known=f"known_failures: [{entry}]")
    ini = {"known_failures": "known.yaml"}
    ended = run(TESTS, "-k", "scenarios", implementation=bug, **ini)
    ended.assert_outcomes(failed=1, deselected=8)
    ended.stdout.fnmatch_lines(["*shared-or-exclusive*"])
    ended.stdout.no_fnmatch_line("*known with another cause*")


@pytest.mark.slow
def test_known_failures_are_expected_and_fixed_ones_reported(
    run: Run, buggy_command: Callable[[str], str], pytester: pytest.Pytester
) -> None:
    bug = buggy_command("exclusive-cpus-stay-in-the-shared-pool")
    signature = "invariant shared-or-exclusive"
    pytester.makefile(".yaml", known=KNOWN.replace("SIGNATURE", signature))
    ini = {"known_failures": "known.yaml"}
    tests = "pool-shrinks-at or pool-begins or scenarios"
    # With more examples, the bug would also show as differences, which are other failures.
    few = TESTS.replace("max_examples=10", "max_examples=2")
    ended = run(few, "-k", tests, "-rx", implementation=bug, **ini)
    ended.assert_outcomes(xfailed=1, failed=1, passed=1, deselected=6)
    ended.stdout.fnmatch_lines(["*it names passes now: remove the entry*"])
    ended.stdout.fnmatch_lines(["XFAIL*known failure: being fixed: *"])
    pytester.makefile(".yaml", known="known_failures: 1")
    ended = run(TESTS, "-k", "pool-begins", **ini)
    ended.stdout.fnmatch_lines(["*numaproof: *known.yaml:1: known_failures: *"])
