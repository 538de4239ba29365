"""`kubectl numaproof`, with a program that answers like kubectl, and with a real one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders import clusters
from builders.clusters import NAME, SECRETS, Cluster, fake_kubectl, interruptible, node_files, serve
from numaproof.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from builders.clusters import FakeKubectl
    from conftest import Command, CommandResult

PROGRAM = (sys.executable, "-c", "from numaproof.cli.entry import run_kubectl_plugin as r; r()")


@pytest.fixture
def plugin(
    command: Command, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., CommandResult]:
    """Runs the plugin in an empty directory."""
    result_type = type(command("--version"))

    def run(*args: str | Path) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["kubectl-numaproof", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main("kubectl numaproof")
        written = capfd.readouterr()
        assert "Traceback" not in written.out + written.err
        return result_type(ended.value.code, written.out, written.err)

    return run


@pytest.fixture
def kubectl(tmp_path: Path) -> FakeKubectl:
    return fake_kubectl(tmp_path / "bin")


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {
            member.name: content.read()
            for member in opened
            if (content := opened.extractfile(member)) is not None and member.isfile()
        }


def test_the_commands_are_shown_first(
    plugin: Callable[..., CommandResult], kubectl: FakeKubectl
) -> None:
    ended = plugin(NAME, "--kubectl", kubectl.program, "--context", "blue", "--dry-run")
    assert ended.code == 0
    own = kubectl.program
    assert ended.out.splitlines() == [
        "Commands to run:",
        f"  {own} get node worker-7 --output=json --context=blue",
        f"  {own} get --raw=/api/v1/nodes/worker-7/proxy/configz --context=blue",
        (
            f"  {own} get pods --all-namespaces --field-selector=spec.nodeName=worker-7"
            " --output=json --context=blue"
        ),
        (
            f"  {own} get noderesourcetopologies.topology.node.k8s.io worker-7 --output=json"
            " --context=blue"
        ),
    ]
    assert not (kubectl.folder / "calls").exists()
    assert not [*Path().iterdir()]


def test_a_dry_run_shows_the_pod(
    plugin: Callable[..., CommandResult], kubectl: FakeKubectl
) -> None:
    options = ("--debug", "--image", "mirror.example/busybox", "--namespace", "ops")
    ended = plugin(NAME, "--kubectl", kubectl.program, "--dry-run", *options)
    assert "image: mirror.example/busybox" in ended.out
    assert "create --filename=- --validate=false --namespace=ops" in ended.out
    assert "--ignore-not-found --wait=false --namespace=ops" in ended.out


def test_without_a_terminal_nothing_runs_unconfirmed(
    plugin: Callable[..., CommandResult], kubectl: FakeKubectl
) -> None:
    ended = plugin(NAME, "--kubectl", kubectl.program)
    assert ended.code == 2
    assert "add --yes, or --dry-run" in " ".join(ended.err.split())
    assert not (kubectl.folder / "calls").exists()


def test_confirmation_is_asked_on_a_terminal(kubectl: FakeKubectl, tmp_path: Path) -> None:
    for answer, code in ((b"n\n", 3), (b"y\n", 0)):
        ours, theirs = os.openpty()
        os.write(ours, answer)
        ended = subprocess.run(
            [*PROGRAM, NAME, "--kubectl", kubectl.program],
            stdin=theirs,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        os.close(ours)
        os.close(theirs)
        assert "Run them? [y/N]: " in ended.stdout
        assert (ended.returncode, (tmp_path / f"{NAME}.tgz").exists()) == (code, not code)


def test_an_archive_is_the_same_for_the_same_node(
    plugin: Callable[..., CommandResult], kubectl: FakeKubectl
) -> None:
    for out in ("a.tgz", "b.tgz"):
        assert plugin(NAME, "--kubectl", kubectl.program, "--yes", "--out", out).code == 0
    assert Path("a.tgz").read_bytes() == Path("b.tgz").read_bytes()
    assert list(members(Path("a.tgz"))) == [
        "collected.yaml",
        "configz.json",
        "node.json",
        "pods.json",
    ]


def test_what_is_missing_is_named(plugin: Callable[..., CommandResult], tmp_path: Path) -> None:
    denied = (
        'Error from server (Forbidden): x is forbidden: User "jane" cannot get resource'
        ' "nodes/proxy" in API group "" at the cluster scope'
    )
    kubectl = fake_kubectl(tmp_path / "bin", configz=denied)
    ended = plugin(NAME, "--kubectl", kubectl.program, "--yes")
    assert (ended.code, ended.err) == (
        1,
        (
            "missing configz.json: not allowed to get nodes/proxy (allow verb get on resource"
            " nodes/proxy in a ClusterRole)\n"
        ),
    )
    assert ended.out.endswith("wrote worker-7.tgz: node.json, pods.json\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("../x", "--yes"), "'../x' is not the name of a node"),
        (("-x", "--yes"), "No such option"),
        ((NAME, "--yes", "--kubectl", "no-kubectl"), "no-kubectl: no such program (install it"),
        ((NAME, "--yes", "--out", "old.tgz"), "old.tgz already exists"),
        ((NAME, "--yes", "--out", "new.zip"), "expected a name ending with .tgz"),
        ((NAME, "--yes", "--image", "x"), "--image has no effect without --debug"),
        ((NAME, "--yes", "--debug", "--kubelet-dir", "x"), "expected an absolute path"),
    ],
)
def test_wrong_options_are_errors(
    plugin: Callable[..., CommandResult], args: tuple[str, ...], message: str
) -> None:
    Path("old.tgz").touch()
    ended = plugin(*args)
    assert ended.code == 2
    assert message in " ".join(ended.err.split())
    assert [file.name for file in Path().iterdir()] == ["old.tgz"]


def test_the_script_is_installed_under_the_name_that_kubectl_looks_for() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    assert 'kubectl-numaproof = "numaproof.cli.entry:run_kubectl_plugin"' in text


# With a real kubectl


@pytest.fixture
def real_kubectl() -> str:
    """The path of a kubectl; skips the test without one."""
    found = os.environ.get("NUMAPROOF_KUBECTL") or shutil.which("kubectl")
    if not found:
        pytest.skip("no kubectl on PATH, and NUMAPROOF_KUBECTL is not set")
    return found


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(node_files(tmp_path / "files"))


@pytest.fixture
def cluster_options(
    cluster: Cluster, real_kubectl: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, ...]]:
    """Options that lead to the cluster."""
    monkeypatch.setenv("HOME", str(tmp_path))  # kubectl caches what it discovers
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with serve(cluster) as url:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "blue", "cluster": {"server": url}}],
            "contexts": [{"name": "blue", "context": {"cluster": "blue"}}],
        }
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(config), "utf-8")
        yield ("--kubeconfig", str(file), "--context", "blue", "--kubectl", real_kubectl, "--yes")


def test_a_node_is_collected(
    plugin: Callable[..., CommandResult], cluster: Cluster, cluster_options: tuple[str, ...]
) -> None:
    ended = plugin(NAME, "--debug", *cluster_options)
    assert (ended.code, ended.err) == (0, "")
    found = members(Path(f"{NAME}.tgz"))
    assert found["state/cpu_manager_state"] == clusters.STATE
    assert b"--cpu-manager-policy=static\n" in found["kubelet-flags.txt"]
    assert "tree/sys/devices/system/node/node1/cpulist" in found
    assert json.loads(found["noderesourcetopology.json"])["zones"]
    everything = b"".join(found.values()).decode()
    assert not [secret for secret in SECRETS if secret in everything]
    path = "/api/v1/namespaces/default/pods"
    assert [verb for verb, _ in cluster.requests] == ["POST", "DELETE"]
    assert all(where.startswith(path) for _, where in cluster.requests)
    assert not cluster.pods


def test_a_cluster_without_topologies_is_fine(
    plugin: Callable[..., CommandResult], cluster: Cluster, cluster_options: tuple[str, ...]
) -> None:
    cluster.topology = False
    ended = plugin(NAME, *cluster_options)
    assert (ended.code, ended.err) == (0, "")
    assert not cluster.requests


@pytest.mark.parametrize(
    ("path", "code", "options", "message"),
    [
        (f"/api/v1/nodes/{NAME}/proxy/configz", 403, (), "allow verb get on resource nodes/proxy"),
        (f"/api/v1/nodes/{NAME}/proxy/configz", 404, (), "its enableDebuggingHandlers is false"),
        ("/api/v1/pods", 403, (), "allow verb list on resource pods"),
        ("/api/v1/namespaces/default/pods", 403, ("--debug",), "not allowed to create pods"),
    ],
)
def test_what_a_real_kubectl_can_not_get_is_named(
    plugin: Callable[..., CommandResult],
    cluster: Cluster,
    cluster_options: tuple[str, ...],
    path: str,
    code: int,
    options: tuple[str, ...],
    message: str,
) -> None:
    cluster.statuses[path] = code
    ended = plugin(NAME, *options, *cluster_options)
    assert ended.code == 1
    assert ended.err.startswith("missing ")
    assert message in ended.err
    assert Path(f"{NAME}.tgz").exists()


def test_a_missing_node_is_an_error(
    plugin: Callable[..., CommandResult], cluster_options: tuple[str, ...]
) -> None:
    ended = plugin("worker-8", *cluster_options)
    assert (ended.code, ended.err) == (
        2,
        'numaproof: Error from server (NotFound): nodes "worker-8" not found\n',
    )
    assert not [*Path().iterdir()]


def test_an_image_that_can_not_be_pulled_is_named(
    plugin: Callable[..., CommandResult], cluster: Cluster, cluster_options: tuple[str, ...]
) -> None:
    cluster.waits = "ImagePullBackOff"
    ended = plugin(NAME, "--debug", *cluster_options)
    assert ended.code == 1
    assert "can't start: ImagePullBackOff: no such image (name an image" in ended.err
    assert not cluster.pods


def test_an_interrupt_deletes_the_pod(
    cluster: Cluster, cluster_options: tuple[str, ...], tmp_path: Path
) -> None:
    cluster.waits = "ContainerCreating"
    with interruptible():
        running = subprocess.Popen(
            [*PROGRAM, NAME, "--debug", *cluster_options],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    assert cluster.created.wait(timeout=60)
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert (running.returncode, err.strip()) == (3, b"numaproof: interrupted")
    assert [verb for verb, _ in cluster.requests] == ["POST", "DELETE"]
    assert not cluster.pods
