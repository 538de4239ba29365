"""A kubelet binary behind the protocol: `python -m numaproof.kubelet PATH [-- ARGUMENT...]`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import Any

from numaproof.conformance.execution.programs.process import ending
from numaproof.conformance.trees import NoTreeError
from numaproof.kubelet import last_words, namespaces
from numaproof.kubelet.binary import BinaryError, Kubelet, build, identify
from numaproof.kubelet.claims import hello
from numaproof.kubelet.driver import Driver
from numaproof.kubelet.machine_trees import DescribedMachines
from numaproof.kubelet.pod_resources import UnreportableError
from numaproof.kubelet.process import KubeletExitedError
from numaproof.protocol import codec, messages
from numaproof.workdir.scratch import scratch_place


class Server:
    """Answers requests, one after the other."""

    def __init__(self, driver: Driver, kubelet: Kubelet, folder: Path) -> None:
        self._driver = driver
        self._kubelet = kubelet
        self._machines = DescribedMachines(folder / "trees")

    async def run(self) -> None:
        """Reads requests from standard input until it ends."""
        await self._driver.open()
        loop = asyncio.get_running_loop()
        # Standard input may be a file, which asyncio can't watch.
        while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
            request = codec.decode(line, codec.Request)
            answer = await self._answer(request)
            sys.stdout.buffer.write(codec.encode_answer(request.id, answer))
            sys.stdout.buffer.flush()
        await self._driver.close()

    async def _answer(self, request: codec.Request) -> messages.Answer:
        try:
            return await self._call(codec.decode_args(request), request.op)
        except KubeletExitedError as error:
            answer = last_words.refusal(str(error), error.code)
            if isinstance(answer, messages.Fault):
                return answer
            what = f"the kubelet ended with {ending(error.code)}: {answer.message}"
            return messages.Fault(what, str(error)[-last_words.MAX_TRACE :])
        except NoTreeError as error:
            return messages.Unsupported(f"this machine: {error}")
        except UnreportableError as error:
            return messages.Unsupported(str(error))
        except Exception as error:  # noqa: BLE001 - the protocol's fault
            return messages.Fault(str(error), traceback.format_exc())

    async def _call(self, args: messages.Args, operation: str) -> messages.Answer:
        match args:
            case messages.HelloArgs():
                return hello(self._kubelet, build(self._kubelet))
            case messages.StartArgs() | messages.DiscoverArgs():
                return await self._on_tree(args)
            case _:
                return await self._on_node(operation, args)

    def _tree_of(self, args: messages.StartArgs) -> Path:
        if args.machine is None:
            raise ValueError("start needs either a machine or a root")
        return self._machines.path(args.machine, args.config)

    async def _on_node(self, operation: str, args: Any) -> messages.Answer:
        if operation in ("state", "reconcile"):
            args = ()
        elif operation in ("admit", "resize", "remove", "end", "devices"):
            args = (args,)
        else:
            return messages.Unsupported(f"operation {operation}")
        answer: messages.Answer = await getattr(self._driver, operation)(*args)
        return answer

    async def _on_tree(self, args: messages.StartArgs | messages.DiscoverArgs) -> messages.Answer:
        if args.kubernetes not in (None, self._kubelet.release):
            return messages.Unsupported(f"kubernetes {args.kubernetes}")
        if isinstance(args, messages.DiscoverArgs):
            root = Path(args.root)
            return _missing(root) or await self._driver.discover(root)
        root = Path(args.root) if args.root else self._tree_of(args)
        return _missing(root) or await self._driver.start(args, root)


def _missing(root: Path) -> messages.Unsupported | None:
    """What a tree lacks that a running kernel always has."""
    for name in ("cpuinfo", "meminfo"):
        if not (root / "proc" / name).exists():
            return messages.Unsupported(f"a machine without /proc/{name}: every kernel has it")
    return None


def main() -> None:
    """Runs the driver in namespaces of its own."""
    parser = argparse.ArgumentParser(prog="python -m numaproof.kubelet", description=__doc__)
    parser.add_argument("--release", help="release to behave as (default: the kubelet's own)")
    parser.add_argument("path", type=Path, help="the kubelet")
    parser.add_argument("arguments", nargs="*", help="more arguments of the kubelet, after --")
    given = parser.parse_args()
    try:
        kubelet = identify(given.path.resolve(), given.release)
        # State directories and trees are where temporary files are.
        exceptions = kubelet.path, Path(scratch_place())
        work = partial(_serve, kubelet, tuple(given.arguments))
        sys.exit(namespaces.run(work, *exceptions))
    except (BinaryError, namespaces.NamespaceError) as error:
        sys.exit(str(error))


def _serve(kubelet: Kubelet, arguments: tuple[str, ...], folder: Path) -> None:
    (folder / "trees").mkdir()
    driver = Driver(kubelet.path, kubelet.minor, folder, arguments)
    asyncio.run(Server(driver, kubelet, folder).run())


if __name__ == "__main__":
    main()
