"""A node's state and what-ifs, as the options of a command describe them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from numaproof.cli import user_files
from numaproof.cli.ordered_options import ALL, options_in_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.simulation.admission import Question
    from numaproof.simulation.comparison import Variant
    from numaproof.simulation.device_checkpoint import RecordedDevices
    from numaproof.simulation.node_state import NodeState
    from numaproof.simulation.pods import DescribedPod
    from numaproof.simulation.what_ifs import Action, Wishes


class ReadState(NamedTuple):
    """A node's state, None for an empty node; its recorded devices; and notes."""

    state: NodeState | None
    devices: RecordedDevices | None
    notes: tuple[str, ...]


def read_state(
    folder: user_files.UserFile | None,
    on_node: Sequence[user_files.UserFile],
    kubernetes: str,
    *,
    lenient: bool,
    node_name: str,
) -> ReadState:
    """Reads a node's checkpoints in a directory, and the pods on it.

    Raises:
        DocumentError: a file is invalid.
        NoStateError: the directory has no checkpoints.
    """
    from numaproof.simulation import state_files
    from numaproof.simulation.node_state import NodeState, running_pods

    if folder is None and not on_node:
        return ReadState(None, None, ())
    files = state_files.load_files(folder.place, folder.name) if folder else {}
    name = folder.name if folder else ""
    _, reading = user_files.read_node(
        (), on_node, (kubernetes,), lenient=lenient, running=True, node_name=node_name
    )
    recorded, lost = recorded_devices(files, name, kubernetes)
    state = NodeState(files, running_pods(reading), name)
    return ReadState(state, recorded, (*reading.notes, *lost))


def recorded_devices(
    files: Mapping[str, bytes], folder: str, kubernetes: str
) -> tuple[RecordedDevices | None, tuple[str, ...]]:
    """Returns the devices in a node's checkpoints, and why a kubelet can't read them.

    None without a Device Manager's checkpoint, or if a kubelet of the release can't read it.
    """
    from numaproof.simulation import device_checkpoint, state_files

    content = files.get(state_files.DEVICES)
    if content is None:
        return None, ()
    found = device_checkpoint.recorded_devices(content, kubernetes)
    wrong = device_checkpoint.findings(content, kubernetes) if found is None else ()
    return found, tuple(f"{folder}/{state_files.DEVICES}: {one}" for one in wrong)


_ADD_PODS = (
    "add the pods with --pods-on-node FILE, made by: kubectl get pods -A --field-selector"
    " spec.nodeName=NODE -o yaml > FILE"
)


def require_pods_on_node(
    question: Question, on_node: Sequence[user_files.UserFile], fix: str = _ADD_PODS
) -> None:
    """Checks that the pods that a node's checkpoints record are given.

    They are not needed if the kubelet refuses to start with the checkpoints.

    Args:
        question: the node.
        on_node: the files with its pods.
        fix: how to give them.

    Raises:
        click.UsageError: they are not.
    """
    from numaproof.inputs.plurals import plural
    from numaproof.protocol.messages import StartRefused
    from numaproof.simulation import state_files
    from numaproof.simulation.admission import start_reference
    from numaproof.workdir.scratch import scratch_folder

    state = question.state
    if on_node or state is None or not (uids := state_files.holders(state.files)):
        return
    with scratch_folder() as folder:
        _, answer = start_reference(question, str(folder))
    if not isinstance(answer, StartRefused):
        raise click.UsageError(
            f"--state {state.folder}: the files name {plural(len(uids), 'pod')} by uid; {fix}"
        )


def what_ifs(
    ctx: click.Context,
    remove: Sequence[str],
    later: Sequence[user_files.UserFile],
    kubernetes: str,
    *,
    lenient: bool,
    replicas: int | None,
) -> tuple[Action, ...]:
    """Returns the what-ifs in the order of the command line, and prints notes on their files.

    Raises:
        click.UsageError: a file has no pods.
        DocumentError: a file is invalid.
    """
    from numaproof.simulation.what_ifs import Action

    def actions() -> Iterator[Action]:
        removed, files = iter(remove), iter(later)
        for name in options_in_order(ctx):
            if name == "remove":
                yield Action("remove", next(removed))
            elif name == "restart":
                yield Action("restart")
            elif name == "later":
                file = next(files)
                _, found = user_files.read_node(
                    (), [file], (kubernetes,), lenient=lenient, replicas=replicas
                )
                for note in found.notes:
                    click.echo(note, err=True)
                user_files.require_pods(found, [file])
                yield Action("then", file.name, found.pods)

    return tuple(actions())


def wishes_of(
    explain: Sequence[str],
    question: Question,
    pods: Sequence[DescribedPod],
    actions: Sequence[Action],
) -> Wishes:
    """Returns what `--explain` asks for.

    Raises:
        UnknownPodError: it names a pod that doesn't arrive.
    """
    from numaproof.simulation.admission import EveryPod
    from numaproof.simulation.what_ifs import Wishes, find_pods

    arriving = [pod.name for pod in (*pods, *(one for each in actions for one in each.pods))]
    named = {name for text in explain if text != ALL for name in find_pods(text, arriving)}
    return Wishes(EveryPod() if ALL in explain else frozenset(named), frozenset(named))


def read_variants(
    texts: Sequence[str], question: Question, adds_defaults: str, *, lenient: bool
) -> tuple[Variant, ...]:
    """Returns the configurations that `--compare` asks for; none without the option.

    `adds_defaults` is the product that may set more on the node; empty if none does.

    Raises:
        click.BadParameter: a text is neither a file nor a change of a setting.
        DocumentError: a file is invalid.
    """
    from numaproof.simulation import comparison

    if not texts:
        return ()
    files, changes = [], []
    try:
        for text in texts:
            if Path(text).exists():
                file = user_files.UserFile(text)
                found = user_files.read_configuration(
                    [file], (question.kubernetes,), lenient=lenient
                )
                files.append((text, found))
            else:
                changes.append(comparison.parse_change(text))
        return comparison.variants(question, changes, files, adds_defaults)
    except comparison.ChangeError as error:
        raise click.BadParameter(str(error), param_hint="'--compare'") from None
