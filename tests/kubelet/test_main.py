"""The program that puts a kubelet behind the protocol answers whatever the kubelet does.

Here kubelets are scripts that say what real ones do before they end.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from builders.machines import regular
from builders.pods import pod
from builders.scripts import kubelet_script
from numaproof import fakesys
from numaproof.conformance.execution import kubelet_command
from numaproof.conformance.execution.implementation import handshake
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Start = Callable[..., Subprocess]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kubelet"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    fakesys.write_directory(fakesys.build_tree(fakesys.load_profile("laptop-4c8t")), folder)
    return folder


@pytest.fixture
def start(file: Path, request: pytest.FixtureRequest) -> Iterator[Start]:
    """Starts a kubelet that is a script."""
    request.getfixturevalue("namespaces_permitted")
    programs = []

    def start(script: str, *arguments: str) -> Subprocess:
        kubelet_script(file, script)
        programs.append(Subprocess(kubelet_command.command(str(file), arguments), 60))
        handshake(programs[-1], "tests")
        return programs[-1]

    yield start
    for one in programs:
        one.close()


def start_args(folder: Path, **others: object) -> messages.StartArgs:
    state = folder / "state"
    state.mkdir(exist_ok=True)
    return messages.StartArgs({}, str(state), **others)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "{}: Kubernetes 1.29 is not supported (expected 1.30 to 1.37)"),
        (("--release", "1.30"), ""),
        (("-x",), "usage: python -m numaproof.kubelet "),
    ],
)
@pytest.mark.usefixtures("namespaces_permitted")
def test_the_command_line_is_checked(options: tuple[str, ...], message: str, file: Path) -> None:
    kubelet_script(file, "", version="1.29.3")
    ended = subprocess.run(
        [sys.executable, "-m", "numaproof.kubelet", *options, file],
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert bool(ended.returncode) is bool(message)
    assert ended.stderr.startswith(message.format(file))
    assert ended.stdout == ""


@pytest.mark.usefixtures("namespaces_permitted")
def test_a_line_that_is_no_request_ends_the_program(file: Path) -> None:
    kubelet_script(file, "")
    ended = subprocess.run(
        [sys.executable, "-m", "numaproof.kubelet", file],
        input="garbage\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "ProtocolError" in ended.stderr


@pytest.mark.usefixtures("namespaces_permitted")
def test_an_unknown_operation_is_a_fault(file: Path) -> None:
    kubelet_script(file, "")
    ended = subprocess.run(
        [sys.executable, "-m", "numaproof.kubelet", file],
        input='{"id": 1, "op": "no-such", "args": {}}\n{"id": 2, "op": "start", "args": {}}\n',
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = map(json.loads, ended.stdout.splitlines())
    assert first["id"] == 1
    assert first["fault"]["message"] == "unknown operation 'no-such'"
    assert (second["id"], second.keys()) == (2, {"id", "fault"})


def test_what_a_process_cannot_be_asked_is_unsupported(
    start: Start, tree: Path, tmp_path: Path
) -> None:
    program = start("")
    for operation, args, what in (
        ("hints", messages.HintsArgs(pod("uid-a", []), None), "operation hints"),
        ("discover", messages.DiscoverArgs(str(tree), "1.31"), "kubernetes 1.31"),
        ("start", start_args(tmp_path, kubernetes="1.31", root=str(tree)), "kubernetes 1.31"),
        ("remove", messages.RemoveArgs("uid-a", "app"), "remove a container"),
        ("start", start_args(tmp_path, machine=MachineInfo()), "this machine: no tree"),
        ("start", start_args(tmp_path, root=str(tmp_path)), "a machine without /proc/cpuinfo"),
        ("discover", messages.DiscoverArgs(str(tmp_path)), "a machine without /proc/cpuinfo"),
    ):
        answer = program.call(operation, args)
        assert isinstance(answer, messages.Unsupported)
        assert answer.what.startswith(what)
    answer = program.call("remove", messages.RemoveArgs("uid-a"))
    assert answer == messages.Done()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            "exit 3",
            messages.StartRefused("config", "it wrote nothing and ended with exit code 3"),
        ),
        ("echo first; echo last; exit 1", messages.StartRefused("config", "last")),
        (
            """echo 'E1126 16:34:08.0 9 x.go:1] "Failed to initialize cpu manager" err="a b"'""",
            messages.StartRefused("cpu", "a b"),
        ),
        (
            "echo panic: x; echo; echo goroutine",
            messages.Fault("panic: x", "panic: x\n\ngoroutine"),
        ),
        ("kill -9 $$", messages.Fault("it ended with signal SIGKILL")),
    ],
)
def test_a_kubelet_that_ends_has_refused_to_start(
    script: str, expected: messages.Answer, start: Start, tree: Path, tmp_path: Path
) -> None:
    program = start(script)
    assert program.call("start", start_args(tmp_path, root=str(tree))) == expected
    assert program.call("start", start_args(tmp_path, machine=regular())) == expected
    assert program.call("discover", messages.DiscoverArgs(str(tree))) == expected


def test_paths_in_a_refusal_are_those_outside(start: Start, tree: Path, tmp_path: Path) -> None:
    program = start("echo delete /var/lib/kubelet/file")
    answer = program.call("start", start_args(tmp_path, root=str(tree)))
    assert answer == messages.StartRefused("config", f"delete {tmp_path}/state/file")


def test_a_kubelet_gets_the_arguments_of_its_user(start: Start, tree: Path, tmp_path: Path) -> None:
    program = start('echo "$@"', "--v=5", "--more=a b")
    answer = program.call("start", start_args(tmp_path, root=str(tree), flags=("--max-pods=9",)))
    assert isinstance(answer, messages.StartRefused)
    assert answer.message.startswith("--config=/run/config.json --kubeconfig=/run/kubeconfig.json")
    assert answer.message.endswith(" --max-pods=9 --v=5 --more=a b")


def test_a_kubelet_reads_its_files_and_reaches_the_server(
    start: Start, tree: Path, tmp_path: Path
) -> None:
    script = """
        grep -q '"kind": "KubeletConfiguration"' /run/config.json && echo configuration
        test -S /run/cri.sock && echo runtime
        ls /sys/devices/system/node | grep -c node
        touch /var/lib/kubelet/file
    """
    program = start(f"({script}) | tr '\\n' ' '")
    answer = program.call("start", start_args(tmp_path, root=str(tree)))
    nodes = len(list((tree / "sys/devices/system/node").glob("*node*")))
    assert answer == messages.StartRefused("config", f"configuration runtime {nodes} ")
    assert (tmp_path / "state/file").exists()


MACHINE = (
    "Machine: {NumCores:2 NumPhysicalCores:2 NumSockets:1 MemoryCapacity:4096 HugePages:[]"
    " MachineID: Topology:[{Id:0 Memory:4096 HugePages:[] Cores:[] Caches:[] Distances:[10]}]}"
)


def test_a_machine_is_discovered_as_soon_as_it_is_logged(start: Start, tree: Path) -> None:
    program = start(f'echo "I1126 16:32:03.1 9 manager.go:1] {MACHINE}"; exec tail -f /dev/null')
    for _ in range(2):
        found = program.call("discover", messages.DiscoverArgs(str(tree)))
        assert isinstance(found, MachineInfo)
        assert (found.num_cores, found.memory_capacity) == (2, 4096)


def test_an_operation_before_the_start_is_a_fault(start: Start) -> None:
    answer = start("").call("admit", messages.AdmitArgs(pod("uid-a", [])))
    assert isinstance(answer, messages.Fault)
    assert "no kubelet is running" in answer.message
