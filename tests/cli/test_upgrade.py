"""`numaproof upgrade`: a user's own node, before its kubelet changes to another release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from numaproof.cli.main import cli
from numaproof.conformance.cases import checkpoints

Command = Callable[..., Any]

STATIC = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0,1"
memoryManagerPolicy: Static
reservedMemory:
- numaNode: 0
  limits: {memory: 1124Mi}
kubeReserved: {memory: 1Gi}
"""
WHOLE = STATIC + "featureGates: {PodLevelResources: true, PodLevelResourceManagers: true}\n"

CPUS_ONLY = STATIC.partition("memoryManagerPolicy")[0]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  containers:
  - name: main
    resources: {limits: {cpu: %s, memory: 1Gi}}
"""
BUDGET = """
apiVersion: v1
kind: Pod
metadata: {name: whole}
spec:
  resources: {limits: {cpu: 2, memory: 1Gi}}
  containers:
  - name: main
    resources: {limits: {cpu: 2, memory: 1Gi}}
"""
LISTED = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: young, uid: uid-young, creationTimestamp: "2026-02-01T00:00:00Z"}
  spec:
    containers:
    - {name: main, resources: {limits: {cpu: 4, memory: 1Gi}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: old, uid: uid-old, creationTimestamp: "2026-01-01T00:00:00Z"}
  spec:
    containers:
    - {name: main, resources: {limits: {cpu: 2, memory: 1Gi}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: done, uid: uid-done, creationTimestamp: "2025-01-01T00:00:00Z"}
  spec:
    containers:
    - {name: main, resources: {limits: {cpu: 6, memory: 1Gi}}}
  status: {phase: Succeeded}
"""
SEPARATOR = "---"


@pytest.fixture
def ask(command: Command) -> Command:
    """Upgrades a laptop; the configuration and the pods are given as text."""

    def run(
        before: str, after: str, *more: str | Path, config: str = STATIC, pods: str = ""
    ) -> Any:
        given: list[str | Path] = ["--from", before, "--to", after, "--machine", "laptop-4c8t"]
        for option, text in (("--config", config), ("--pods", pods)):
            if text:
                Path(f"{option[2:]}.yaml").write_text(text)
                given += [option, f"{option[2:]}.yaml"]
        return command("upgrade", *given, *more)

    return run


def lines(out: str) -> list[str]:
    return [line.strip() for line in out.splitlines()]


# What is told


def test_pods_that_keep_what_they_have_are_0(ask: Command) -> None:
    ended = ask("1.35", "1.36", pods=POD % ("db", 2) + SEPARATOR + POD % ("web", "500m"))
    assert ended.code == 0
    told = lines(ended.out)
    assert told[0] == "✓ The kubelet of 1.36 starts, and 2 pods keep what they have"
    assert "✓ cpu_manager_state: read as it is" in told
    assert "✓ memory_manager_state: read as it is" in told
    assert "✓ Pod/default/db/main: keeps CPUs 2-3, 1 GiB on node 0" in told
    assert "✓ 2 pods to stop and start again: 0 elsewhere, 0 with something else, 0 refused" in told
    assert "To do" not in told


def test_without_anything_given_the_gates_of_the_managers_are_told(ask: Command) -> None:
    ended = ask("1.33", "1.36", config="")
    assert ended.code == 0
    told = lines(ended.out)
    assert told[0] == "✓ The kubelet of 1.36 starts"
    assert "~ MemoryManager: stable, locked on → gone" in told
    assert "~ PodLevelResources: alpha, off → beta, on" in told
    assert not any("CSIMigrationPortworx" in line for line in told)


def test_a_gate_that_is_gone_is_an_error_at_its_line(ask: Command) -> None:
    ended = ask("1.33", "1.36", config=STATIC + "featureGates:\n  MemoryManager: true\n")
    assert ended.code == 1
    told = lines(ended.out)
    assert told[0] == "✗ The kubelet of 1.36 does not start with this configuration"
    where = "✗ config.yaml:12: featureGates.MemoryManager: unrecognized feature gate: MemoryManager"
    assert f"{where} (remove the gate)" in told
    assert "✗ MemoryManager: stable, locked on → gone, true in the configuration" in told
    assert "1. fix the configuration; the rest of this answer is about the fixed one" in told


def test_an_option_that_needs_a_gate_in_the_older_release_is_told(ask: Command) -> None:
    options = 'cpuManagerPolicyOptions: {prefer-align-cpus-by-uncorecache: "true"}\n'
    ended = ask("1.34", "1.33", config=STATIC + options)
    assert ended.code == 1
    assert "~ prefer-align-cpus-by-uncorecache: beta → alpha" in lines(ended.out)
    assert "config.yaml:11: cpuManagerPolicyOptions.prefer-align-cpus-by-uncorecache" in ended.out


def test_errors_of_both_releases_are_of_today_and_not_of_the_upgrade(ask: Command) -> None:
    ended = ask("1.35", "1.36", config=STATIC.replace("1124Mi", "1Gi"))
    assert ended.code == 1
    told = lines(ended.out)
    assert "Configuration" not in told
    assert told[told.index("Before the upgrade") + 1].startswith(
        '✗ config.yaml:7: reservedMemory: the total amount "1Gi" of type "memory" is not equal '
    )
    assert "1. make the kubelet of 1.35 start: run `numaproof config check`" in told


def test_files_that_a_downgrade_refuses_must_go_even_after_a_drain(ask: Command) -> None:
    ended = ask("1.36", "1.35", config=WHOLE, pods=POD % ("db", 2) + SEPARATOR + BUDGET)
    assert ended.code == 1
    told = lines(ended.out)
    refused = [line for line in told if line.startswith("✗ cpu_manager_state: refused: start cpu")]
    assert len(refused) == 1
    assert '"/var/lib/kubelet/cpu_manager_state"' in refused[0]
    assert "✗ cpu_manager_state: refused even after all pods have left" in told
    assert "Pods that stay on the node" not in told
    assert "✗ Pod/default/whole/main: CPUs 4-5, 1 GiB on node 0 → the shared pool" in told
    both = "/var/lib/kubelet/cpu_manager_state and /var/lib/kubelet/memory_manager_state"
    assert f"3. delete {both}" in told


def test_what_a_drain_costs_is_told_where_nothing_else_is_to_do(ask: Command) -> None:
    config = STATIC + "featureGates: {PodLevelResources: true}\n"
    ended = ask("1.33", "1.35", config=config, pods=BUDGET)
    assert ended.code == 1
    told = lines(ended.out)
    assert told[0] == (
        "~ The kubelet of 1.35 starts, and 1 pod keeps what it has; "
        "after a drain, 1 pod would not get it again"
    )


FULL = CPUS_ONLY + 'cpuManagerPolicyOptions: {full-pcpus-only: "true"}\n'


def test_a_pod_that_is_refused_when_it_stays_asks_for_a_drain(ask: Command) -> None:
    ended = ask("1.35", "1.36", config=FULL, pods=POD % ("db", 6))
    assert ended.code == 1
    told = lines(ended.out)
    assert told[0] == "~ The kubelet of 1.36 starts; of 1 pod on the node, 1 refused"
    assert any(line.startswith("✗ Pod/default/db: refused: SMTAlignmentError: ") for line in told)
    drain = "drain the node before the upgrade, so that no running pod loses what it holds"
    assert f"1. {drain}" in told


def test_json_has_every_part(ask: Command) -> None:
    ended = ask("1.36", "1.35", "--json", config=WHOLE, pods=BUDGET)
    assert ended.code == 1
    told = ended.json()
    assert (told["before"], told["after"], told["today"]) == ("1.36", "1.35", None)
    assert [one["path"] for one in told["errors"]] == [["featureGates", "PodLevelResourceManagers"]]
    gone = {"gate": "PodLevelResourceManagers", "change": "gone", "before": "alpha, off"}
    assert {**gone, "after": None, "given": True} in told["gates"]
    assert [one["fate"] for one in told["staying"]["files"]] == ["refused", "refused"]
    (pod,) = told["drained"]["pods"]
    assert (pod["pod"], pod["fate"]) == ("Pod/default/whole", "changes")
    assert pod["before"]["main"]["exclusive"] == "2-3"
    assert pod["after"]["main"]["exclusive"] == ""


# What is given


def state(entries: dict[str, dict[str, str]], shared: str) -> Path:
    """A directory with the file of a CPU Manager."""
    folder = Path("state")
    folder.mkdir()
    fields = {"policyName": "static", "defaultCpuSet": shared, "entries": entries}
    (folder / "cpu_manager_state").write_text(checkpoints.text(fields))
    return folder


def test_pods_of_a_node_are_known_by_their_uids_and_keep_what_its_files_say(ask: Command) -> None:
    folder = state({"uid-old": {"main": "6-7"}, "uid-lost": {"main": "4"}}, "0-3,5")
    before = (folder / "cpu_manager_state").read_bytes()
    ended = ask("1.35", "1.36", "--state", folder, config=CPUS_ONLY, pods=LISTED)
    assert ended.code == 0
    told = lines(ended.out)
    assert "✓ Pod/default/old/main: keeps CPUs 6-7" in told
    assert "✓ Pod/default/young/main: keeps CPUs 2-5" in told
    assert "~ uid-lost: holds CPUs or memory by the files, and is not among the pods" in told
    assert "pods.yaml:17: skipped Pod/default/done: it has ended" in ended.err
    assert (folder / "cpu_manager_state").read_bytes() == before
    assert [file.name for file in folder.iterdir()] == ["cpu_manager_state"]


def test_the_oldest_pod_of_a_node_is_admitted_first(ask: Command) -> None:
    told = lines(ask("1.35", "1.36", config=CPUS_ONLY, pods=LISTED).out)
    assert "✓ Pod/default/old/main: keeps CPUs 2-3" in told
    assert "✓ Pod/default/young/main: keeps CPUs 4-7" in told


def test_a_pod_that_the_old_kubelet_refuses_is_not_on_the_node(ask: Command) -> None:
    ended = ask("1.35", "1.36", pods=POD % ("huge", 12))
    assert ended.code == 0
    said = "~ Pod/default/huge: refused by the kubelet of 1.35, so not on the node"
    assert said in lines(ended.out)


def test_files_of_another_policy_are_refused_today(ask: Command) -> None:
    folder = state({}, "0-7")
    ended = ask("1.35", "1.36", "--state", folder, config="")
    assert ended.code == 1
    assert "✗ the kubelet does not start: start cpu manager error: " in ended.out
    assert "✗ cpu_manager_state: refused: " in ended.out


@pytest.mark.parametrize("text", ["garbage", "[]", '{"entries": []}'])
def test_files_that_nothing_can_be_read_from_are_refused(ask: Command, text: str) -> None:
    folder = Path("state")
    folder.mkdir()
    (folder / "cpu_manager_state").write_text(text)
    ended = ask("1.35", "1.36", "--state", folder, config=CPUS_ONLY)
    assert ended.code == 1
    assert "The kubelet of 1.36 does not start with cpu_manager_state" in ended.out


def test_files_without_pods_ask_for_the_pods(ask: Command) -> None:
    folder = state({"uid-old": {"main": "6-7"}}, "0-5")
    told = lines(ask("1.35", "1.36", "--state", folder, config=CPUS_ONLY).out)
    assert "~ name the pods with --pods to see which of them move" in told


def test_devices_are_kept(ask: Command) -> None:
    pods = POD.replace("memory: 1Gi", "memory: 1Gi, vendor.example/nic: 1") % ("db", 2)
    ended = ask("1.35", "1.36", "--devices", "vendor.example/nic=1@0", pods=pods)
    assert ended.code == 0
    keeps = "✓ Pod/default/db/main: keeps CPUs 2-3, 1 GiB on node 0, vendor.example/nic nic-0"
    assert keeps in lines(ended.out)


# Kubelets in the place of the reference

PANICS = """
if request.op == "start" and b"MemoryManager" in bytes(request.args):
    broken = {"message": "panic: unrecognized feature gate: MemoryManager", "trace": ""}
    print(json.dumps({"id": request.id, "fault": broken}), flush=True)
else:
    answer(request)
"""


def test_kubelets_may_answer_in_the_place_of_the_reference(
    ask: Command, program: Callable[[str], str]
) -> None:
    pods = POD % ("db", 2) + SEPARATOR + BUDGET
    alone = ask("1.36", "1.35", config=WHOLE, pods=pods)
    same = ask(
        "1.36", "1.35", "--implementation", program("answer(request)"), config=WHOLE, pods=pods
    )
    assert same.out == alone.out
    gate = STATIC + "featureGates: {MemoryManager: true}\n"
    ended = ask("1.33", "1.36", "--implementation", program(PANICS), config=gate)
    assert ended.code == 1
    assert (
        "the kubelet does not start: panic: unrecognized feature gate: MemoryManager" in ended.out
    )


# What is wrong


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--from", "1.29", "--to", "1.36"), "'1.29' is not one of"),
        (("--from", "1.35"), "Missing option '--to'"),
        (("--from", "1.35", "--to", "1.36", "--state", "."), "found neither cpu_manager_state nor"),
        (("--from", "1.35", "--to", "1.36", "--state", "none"), "'none' does not exist"),
        (("--from", "1.35", "--to", "1.36", "--devices", "nic"), "neither a file nor"),
        (("--from", "1.35", "--to", "1.36", "--implementation", "/no/kubelet"), "can't start"),
        (("--from", "1.35", "--to", "1.36", "--implementation", "false"), "the program ended at"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_options_are_2(command: Command, args: tuple[str, ...], said: str) -> None:
    ended = command("upgrade", "--machine", "laptop-4c8t", *args)
    assert ended.code == 2
    assert said in ended.err


def test_standard_input_can_be_read_once() -> None:
    given = ["upgrade", "--from", "1.35", "--to", "1.36", "--machine", "laptop-4c8t"]
    ran = CliRunner().invoke(cli, [*given, "--config", "-", "--pods", "-"], input="")
    assert ran.exit_code == 2
    assert "standard input can be read once" in ran.output


def test_wrong_files_are_2(ask: Command, command: Command) -> None:
    ended = ask("1.35", "1.36", config="kind: Pod")
    assert ended.code == 2
    assert "config.yaml:1: kind: expected KubeletConfiguration" in ended.err
    ended = ask("1.35", "1.36", pods="kind: Service\nmetadata: {name: web}\n")
    assert ended.code == 2
    assert "no pods in pods.yaml; name manifests of Pods" in ended.err
    Path("config.yaml").write_bytes(b"\xff")
    given = ("--from", "1.35", "--to", "1.36", "--machine", "laptop-4c8t")
    assert "not UTF-8 text" in command("upgrade", *given, "--config", "config.yaml").err


def test_a_release_that_no_given_kubelet_has_is_2(
    ask: Command, program: Callable[[str], str]
) -> None:
    only = program(
        """
        reply = json.loads(codec.encode_answer(request.id, reference.call(
            request.op, codec.decode_args(request))))
        if request.op == "hello":
            reply["ok"]["kubernetes"] = ["1.36"]
        print(json.dumps(reply), flush=True)
        """
    )
    ended = ask("1.35", "1.36", "--implementation", only)
    assert ended.code == 2
    assert "no program claims 1.35, only 1.36" in ended.err


def test_a_terminal_gets_colour(ask: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numaproof.reports.terminal.is_live", lambda *_: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[32m✓\x1b[0m The kubelet of 1.36 starts" in ask("1.35", "1.36", config="").out


def test_a_pipe_gets_none(ask: Command) -> None:
    assert "\x1b" not in ask("1.35", "1.36", config="").out
