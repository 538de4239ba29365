"""`numaproof upgrade`: shows how changing the kubelet's release would affect a node."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from numaproof.cli import user_files
from numaproof.cli.captured_nodes import captured_node_option
from numaproof.cli.machine_names import node_devices_option, node_machine_option, read_machine
from numaproof.cli.targets import open_target, program_option, release_choice, timeout_option
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.execution.implementation import Implementation

ATTENTION = 1


@click.command()
@captured_node_option(
    necessary=("before", "machine"),
    machine="machine",
    config="configs",
    state="state",
    pods="files",
    release="before",
)
@release_choice(
    "--from",
    "before",
    help="The node's current Kubernetes release. Required without --node.",
)
@release_choice(
    "--to",
    "after",
    required=True,
    help="Kubernetes release to switch to, newer or older.",
)
@node_machine_option
@user_files.config_option()
@click.option(
    "--state",
    type=user_files.USER_FOLDER,
    metavar="DIR",
    help="The node's /var/lib/kubelet or a copy, which is not changed (default: the files that"
    " the pods would leave behind).",
)
@click.option(
    "--pods",
    "files",
    type=user_files.USER_FILE,
    multiple=True,
    metavar="FILE",
    help="Pods on the node: manifests, or the output of kubectl get pods -o yaml. Repeatable.",
)
@user_files.replicas_option
@user_files.node_name_option
@node_devices_option
@program_option(
    "Kubelet that speaks the protocol (default: the reference). Repeatable: one per release.",
    multiple=True,
)
@timeout_option
@user_files.lenient_option
@click.option(
    "--strict",
    is_flag=True,
    help="Also exit with 1 if a known defect of a kubelet affects an answer.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def upgrade(
    *,
    before: str,
    after: str,
    machine: str,
    assume: tuple[tuple[str, int], ...],
    configs: tuple[user_files.UserFile, ...],
    state: user_files.UserFile | None,
    files: tuple[user_files.UserFile, ...],
    replicas: int | None,
    node_name: str,
    devices: tuple[str, ...],
    implementation: tuple[str, ...],
    timeout: float,
    lenient: bool,
    strict: bool,
    as_json: bool,
) -> int:
    """Show what a kubelet upgrade or downgrade would change on a node.

    The answer covers configuration errors, changed feature gates and policy options, state files
    to delete, pods that would lose their CPUs, memory or devices, and the cost of a drain.

    Exit codes: 0 nothing to do, 1 something to do or consider, 2 invalid input.

    \b
    Examples:
      numaproof upgrade --from 1.33 --to 1.36 --machine laptop-4c8t --config kubelet.yaml
      kubectl get pods -A --field-selector spec.nodeName=NODE -o yaml > pods.yaml
      numaproof upgrade --from 1.35 --to 1.36 --machine / --config /var/lib/kubelet/config.yaml \\
        --state /var/lib/kubelet --pods pods.yaml
    """
    from msgspec.structs import replace

    from numaproof.cli.node_files import recorded_devices
    from numaproof.cli.upgrade_view import Setting, upgrade_lines
    from numaproof.reports.console import show
    from numaproof.simulation import devices as given_devices
    from numaproof.simulation.evaluation_gaps import summarize
    from numaproof.simulation.state_files import load_files, recording_files
    from numaproof.simulation.upgrades import UpgradeQuestion
    from numaproof.simulation.upgrades import upgrade as play
    from numaproof.workdir.scratch import scratch_folder

    settings, found = user_files.read_node(
        configs,
        files,
        (before, after),
        lenient=lenient,
        replicas=replicas,
        running=True,
        node_name=node_name,
    )
    if files:
        user_files.require_pods(found, files)
    document = settings.document if settings else None
    text = read_machine(machine, before, assume)
    info = text.machine
    checkpoints = load_files(state.place, state.name) if state else None
    if not settings and checkpoints and (recording := dict(recording_files(checkpoints))):
        name, policy = next(iter(recording.items()))
        raise click.UsageError(
            f"--state {state.name if state else ''}: {name} has the policy {policy}, unlike the"
            " kubelet's defaults; add the node's configuration with --config"
        )
    record, lost = recorded_devices(checkpoints or {}, state.name if state else "", before)
    plugins, unsure = given_devices.as_recorded(given_devices.read(devices, info), record)
    described = user_files.machine_for(
        settings.settings if settings else {},
        text.with_known_devices(given_devices.counts(plugins)),
        state=state is not None,
    )
    question = UpgradeQuestion(
        machine=info,
        config=settings.settings if settings else {},
        before=before,
        after=after,
        devices=plugins,
        files=checkpoints,
        flags=settings.flags if settings else (),
        adds_defaults=settings.adds_defaults if settings else "",
    )
    with (
        user_files.locate_unsupported(document),
        scratch_folder() as folder,
        _kubelet(implementation, timeout, (before, after)) as kubelet,
    ):
        answer = play(question, found.pods, folder, kubelet if implementation else None)
        gaps = summarize((pod.name, pod.gaps) for pod in found.pods)
        of_pods = (*found.notes, *lost, *unsure, *(f"not evaluated: {gap}" for gap in gaps))
        of_node = (*(settings.notes if settings else ()), *described.lines)
        answer = replace(answer, notes=(*of_node, *of_pods))
    for note in of_pods:
        click.echo(note, err=True)
    if as_json:
        click.echo(codec.encode(answer))
    else:
        setting = Setting(machine, document, pods=bool(files), state=state is not None)
        show(upgrade_lines(answer, setting))
    return ATTENTION if answer.attention or (strict and answer.warnings) else 0


@contextmanager
def _kubelet(
    commands: tuple[str, ...], timeout: float, releases: tuple[str, ...]
) -> Iterator[Implementation]:
    """Opens the kubelets for the releases: the given programs, or the reference.

    Raises:
        click.UsageError: no program claims one of the releases.
        click.ClickException: a program broke.
    """
    from numaproof.conformance.execution.implementation import ImplementationFailure

    try:
        with open_target(commands, timeout) as target:
            claimed = target.hello.kubernetes
            missing = [release for release in releases if release not in claimed]
            if missing:
                raise click.UsageError(
                    f"no program claims Kubernetes {missing[0]}, only {', '.join(claimed)}; give"
                    " one --implementation per release"
                )
            yield target.implementation
    except ImplementationFailure as failure:
        raise click.ClickException(str(failure)) from None
