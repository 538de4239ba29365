"""`kubectl numaproof`: collects what numaproof needs to know about a node into an archive."""

from __future__ import annotations

import re
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from numaproof.cli.outputs import OUTPUT_FILE, require_new
from numaproof.cli.targets import Duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.collection.debug_pod import DebugPod
    from numaproof.formats.nodes.contents import Record

INCOMPLETE = 1

_SUFFIXES = (".tgz", ".tar.gz", ".tar.xz", ".tar")
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
"""The names that the API server accepts."""


def _node_name(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not _NODE.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is not the name of a node; `kubectl get nodes` lists them", ctx, param
        )
    return value


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("node", callback=_node_name)
@click.option(
    "--debug",
    is_flag=True,
    help="Also run a pod on the node that reads /sys, /proc and the kubelet's state files, and"
    " delete it afterwards.",
)
@click.option(
    "--image",
    default=None,
    metavar="IMAGE",
    help="Image of the pod, with a shell, grep, xargs, sed, gzip and base64 (default:"
    " docker.io/library/busybox:stable).",
)
@click.option(
    "--namespace", default=None, metavar="NAME", help="Namespace of the pod (default: kubectl's)."
)
@click.option(
    "--kubelet-dir",
    default=None,
    metavar="DIR",
    help="The kubelet's root directory (default: /var/lib/kubelet).",
)
@click.option(
    "--out",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Archive to write, ending in .tgz, .tar.gz, .tar.xz or .tar (default: NODE.tgz).",
)
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="Only show the commands that would run.")
@click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig.")
@click.option("--kubeconfig", default="", metavar="FILE", help="kubeconfig to use.")
@click.option(
    "--kubectl",
    default="kubectl",
    metavar="PATH",
    help="kubectl to use (default: the one on PATH).",
)
@click.option(
    "--timeout",
    type=Duration(),
    default="2m",
    help="Time limit for each command of kubectl, and for the pod (default: 2m).",
)
@click.version_option(package_name="numaproof", prog_name="kubectl numaproof")
def collect(
    *,
    node: str,
    debug: bool,
    image: str | None,
    namespace: str | None,
    kubelet_dir: str | None,
    out: Path | None,
    yes: bool,
    dry_run: bool,
    context: str,
    kubeconfig: str,
    kubectl: str,
    timeout: float,
) -> int:
    """Collect NODE into one archive, for `numaproof simulate` and other commands on nodes.

    The archive contains the node's capacity, its kubelet's configuration and its pods, with only
    the fields that the commands read: no variables, images, commands or volumes. With --debug, it
    also contains the machine's topology and the kubelet's state files. The commands take the
    archive with --node.

    Exit codes: 0 everything was collected, 1 the archive is incomplete, 2 nothing was collected or
    invalid input.

    \b
    Examples:
      kubectl numaproof worker-7
      kubectl numaproof worker-7 --debug --out worker-7.tgz
    """
    from numaproof import fakesys
    from numaproof.collection import collecting
    from numaproof.collection.kubectl import Kubectl

    target = out or Path(f"{node}.tgz")
    if not target.name.endswith(_SUFFIXES):
        raise click.BadParameter(
            f"{target}: expected a name ending with {', '.join(_SUFFIXES)}", param_hint="--out"
        )
    pod = _pod(node, image, namespace, kubelet_dir, debug=debug)
    own = Kubectl(kubectl, context, kubeconfig, timeout)
    request = collecting.Request(node, pod)
    click.echo("Commands to run:")
    for line in collecting.commands(own, request):
        click.echo(f"  {line}")
    if dry_run:
        if pod is not None:
            click.echo(f"\nThe pod:\n\n{pod.manifest_text(timeout)}", nl=False)
        return 0
    require_new(target)
    _confirm(yes=yes)
    found = collecting.collect(own, request, lambda text: click.echo(f"warning: {text}", err=True))
    fakesys.write_tar(found.tree(), target)
    for line in _missing(found.record):
        click.echo(line, err=True)
    click.echo(f"wrote {target}: {', '.join(found.record.parts)}")
    return INCOMPLETE if found.record.failures else 0


def _pod(
    node: str, image: str | None, namespace: str | None, kubelet_dir: str | None, *, debug: bool
) -> DebugPod | None:
    """Returns the pod to run on the node, if any.

    Raises:
        click.UsageError: an option of the pod has no effect, or is invalid.
    """
    from numaproof.collection import debug_pod

    options = {"--image": image, "--namespace": namespace, "--kubelet-dir": kubelet_dir}
    if not debug:
        for option, value in options.items():
            if value is not None:
                raise click.UsageError(f"{option} has no effect without --debug; add it")
        return None
    if kubelet_dir is not None and not kubelet_dir.startswith("/"):
        raise click.BadParameter(
            f"{kubelet_dir!r}: expected an absolute path", param_hint="--kubelet-dir"
        )
    return debug_pod.DebugPod(
        node,
        image or debug_pod.IMAGE,
        namespace or "",
        kubelet_dir or debug_pod.KUBELET_FOLDER,
    )


def _confirm(*, yes: bool) -> None:
    """Asks for confirmation.

    Raises:
        click.UsageError: nobody can be asked.
        click.Abort: the user declined.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(
            "standard input is not a terminal, so nobody can confirm the commands; add --yes, or"
            " --dry-run to see them only"
        )
    click.confirm("Run them?", abort=True)


def _missing(record: Record) -> Iterator[str]:
    """Yields what could not be collected; parts that failed for the same reason share a line."""
    for (message, fix), failures in groupby(
        record.failures, key=lambda failure: (failure.message, failure.fix)
    ):
        parts = ", ".join(failure.part for failure in failures)
        yield f"missing {parts}: {message}" + (f" ({fix})" if fix else "")
