"""Discovery in small trees: each row of `trees.yaml` is a tree and the kubelet's result.

Steps write the tree: `cpu` has a number, a core and a package; `node` a number and its CPUs;
`cache` a CPU, a level and the map of CPUs that share it. A path has the text of a file, or null for
a folder. `on` names the row whose tree comes first, and `$` stands for each text in `each`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builders.tables import Table, alike
from numaproof.protocol import codec
from numaproof.reference.cadvisor.discovery import DiscoveryError, discover
from numaproof.reference.deviations.releases import TABLE

if TYPE_CHECKING:
    from pathlib import Path

TREES = Table(__file__, "trees.yaml", compact=True)
_SHORT = {
    "cpu": "sys/devices/system/cpu",
    "node": "sys/devices/system/node",
    "hugepages": "sys/kernel/mm/hugepages",
}


@TREES
def test_a_tree_is_discovered_like_the_kubelet_does(row: dict[str, Any], tmp_path: Path) -> None:
    said = {}
    for number, text in enumerate(row.get("each", [""])):
        for release in row.get("releases", ["1.35"]):
            root = tmp_path / f"{number}-{release}"
            _write(root, [*_tree(row), *row["tree"]], text)
            said[f"{release} {text}" if "releases" in row else text] = _discovery_outcome(
                root, release
            )
    TREES.check(row, alike(said))


def _tree(row: dict[str, Any]) -> list[Any]:
    steps = [{"proc/cpuinfo": ""}, {"proc/meminfo": "MemTotal:        1024 kB\n"}]
    return [*steps, *(TREES.row(row["on"])["tree"] if "on" in row else ())]


def _write(root: Path, steps: list[dict[str, Any]], text: str) -> None:
    for step in steps:
        ((what, args),) = step.items()
        match what, args:
            case "cpu", [number, core, package]:
                files = {"core_id": core, "physical_package_id": package}
                for name, content in files.items():
                    path = root / _SHORT["cpu"] / f"cpu{number}/topology/{name}"
                    _file(path, str(content).replace("$", text) + "\n")
            case "node", [number, *cpus]:
                folder = root / _SHORT["node"] / f"node{number}"
                folder.mkdir(parents=True)
                for cpu in cpus:
                    (folder / f"cpu{cpu}").symlink_to(f"../../cpu/cpu{cpu}")
            case "cache", [cpu, level, sharers, *changes]:
                made = {"id": 0, "size": "32K", "level": level, "type": "Unified"}
                made |= {"shared_cpu_map": sharers, **dict(*changes)}
                folder = root / _SHORT["cpu"] / f"cpu{cpu}/cache/index{level}"
                for name, content in made.items():
                    _file(folder / name, f"{content}\n")
            case "remove", path:
                (root / _long(path.replace("$", text))).unlink()
            case path, content:
                _file(root / _long(path.replace("$", text)), content and content.replace("$", text))


def _long(path: str) -> str:
    first, _, rest = path.partition("/")
    return f"{_SHORT.get(first, first)}/{rest}"


def _file(path: Path, content: str | None) -> None:
    """Writes a file in Latin-1, or creates a folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        path.unlink(missing_ok=True)
        path.mkdir()
    else:
        path.write_text(content, encoding="latin-1")


def _discovery_outcome(root: Path, release: str) -> Any:
    """Returns the machine without empty fields, or the error, with the log."""
    logged: list[str] = []
    try:
        machine = discover(root, TABLE[release].no_cpu, logged.append)
    except DiscoveryError as refused:
        return {"refused": str(refused)}
    return _short({"complaints": logged, **codec.to_plain(machine)})


def _short(value: Any) -> Any:
    """Removes empty parts of a value; caches become text."""
    if isinstance(value, list | tuple):
        return [_short(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "type" in value:
        return "L{level} {type}, id {id}, {size} bytes".format(**value)
    shown = {name: _short(one) for name, one in value.items()}
    return {name: one for name, one in shown.items() if one or name in ("node_id", "cores")}


def test_cores_are_siblings_if_the_kernel_lists_them(tmp_path: Path) -> None:
    topology = tmp_path / "sys/devices/system/cpu"
    steps = [{"cpu": [number, number // 2, 0]} for number in range(4)]
    _write(tmp_path, [*_tree({}), *steps, {"node": [0, 0, 1, 2, 3]}], "")

    def cores(*, by_siblings: bool) -> list[tuple[int, ...]]:
        (node,) = discover(tmp_path, by_siblings=by_siblings).topology or ()
        return [core.thread_ids or () for core in node.cores or ()]

    assert cores(by_siblings=True) == cores(by_siblings=False) == [(0, 1), (2, 3)]
    for number, mask in enumerate(("5", "a", "5", "a")):
        (topology / f"cpu{number}/topology/thread_siblings").write_text(f"{mask}\n")
    assert cores(by_siblings=True) == [(0, 2), (1, 3)]
    for number in range(4):
        (topology / f"cpu{number}/topology/thread_siblings_list").write_text(f"{number}\n")
    assert cores(by_siblings=True) == [(0,), (1,), (2,), (3,)]
    assert cores(by_siblings=False) == [(0, 1), (2, 3)]
