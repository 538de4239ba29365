"""The kinds of input, and how a seed becomes a trial of one."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from numaproof.fakesys.entries import Directory, Symlink
from robustness import bases
from robustness.mutations import changed, changed_below, damaged
from robustness.nodes import Node, made
from robustness.trials import Archive, Document, File, Folder, Lines, Link, Text, Trial
from robustness.values import HOSTILE, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustness.nodes import Form

_DAMAGED = 0.2
"""How often bytes change instead of nodes."""

_ANYWHERE = 0.35
"""How often changes to a case are made anywhere in its file."""

_PROGRAM = shlex.join([sys.executable, "-IS", str(Path(__file__).with_name("program.py"))])
_ON = ("--machine", bases.MACHINE)
_PROFILES = ("laptop-4c8t", "memoryless-node", "arm64-no-core-ids", "dgx-spark-gb10")


def trial(name: str) -> Trial:
    """The trial of a name, ``KIND:SEED``."""
    kind = name.partition(":")[0]
    # The generator takes a text as its seed, the same on every version of Python.
    made = KINDS[kind](Random(name))
    return Trial(name, **made)


def _file(rng: Random, root: Node, form: Form, *donors: Node) -> Document | Text:
    """A document with one to three changes, or with damaged bytes."""
    if rng.random() < _DAMAGED:
        other = Document(rng.choice(donors or (root,)), form).bytes()
        return Text(damaged(rng, Document(root, form).bytes(), other))
    for _ in range(rng.choice((1, 1, 2, 3))):
        root = changed(rng, root, donors)
    return Document(root, form, escaped=rng.random() < 0.5)


def _input(name: str, file: File, *ways: tuple[str, ...], **more: Any) -> dict[str, Any]:
    """What makes a trial of one file, without a way to play it chosen."""
    return {"files": {name: file}, "subject": name, "ways": ways, **more}


def _chosen(rng: Random, made: dict[str, Any]) -> dict[str, Any]:
    ways = made.pop("ways")
    return {**made, "args": rng.choice(ways)}


def _profile(rng: Random) -> dict[str, Any]:
    roots = [bases.profile(name) for name in _PROFILES]
    file = _file(rng, rng.choice(roots), "yaml", *roots)
    ways = (
        ("profile", "validate", "m.yaml"),
        ("profile", "show", "m.yaml"),
        ("profile", "tree", "m.yaml", "--to", "made.tar"),
    )
    chosen = _chosen(rng, _input("m.yaml", file, *ways))
    return {**chosen, "made": "made.tar"} if "tree" in chosen["args"] else chosen


def _tree_files(rng: Random) -> dict[str, File]:
    entries = dict(bases.tree(rng.choice(("laptop-4c8t", "vm-no-numa", "vm-1-cpu"))))
    names = list(entries)
    for _ in range(rng.choice((1, 1, 2, 5))):
        name = rng.choice(names)
        entry = entries[name]
        way = rng.randrange(6)
        if way == 0:
            entries[name] = Symlink(rng.choice(("x", ".", "../..", "/etc/passwd", "/dev/zero")))
        elif way == 1:
            entries[name] = Directory()
        elif way == 2:
            entries.pop(name)
            names.remove(name)
        elif way == 3 and isinstance(entry, bytes):
            other = entries[rng.choice(names)]
            entries[name] = damaged(rng, entry, other if isinstance(other, bytes) else b"7\n")
        else:
            text = rng.choice((*TEXTS, "4096", "2147483648", "9" * 4301))
            entries[name] = text.encode(errors="surrogatepass") + b"\n"
    kinds: dict[str, File] = {}
    for name, entry in entries.items():
        if isinstance(entry, bytes):
            kinds[name] = Text(entry)
        else:
            kinds[name] = Link(entry.target) if isinstance(entry, Symlink) else Folder()
    return kinds


def _tree(rng: Random) -> dict[str, Any]:
    files = {f"tree/{name}": file for name, file in _tree_files(rng).items()}
    return {
        "files": files,
        "subject": "tree",
        "args": rng.choice(
            (
                ("discover", "tree"),
                ("discover", "tree", "--json"),
                ("profile", "capture", "tree", "--to", "made.yaml"),
            )
        ),
        "made": "made.yaml",
    }


def _archive(rng: Random) -> dict[str, Any]:
    members = list(_tree_files(rng).items())
    for _ in range(rng.choice((1, 1, 3))):
        spot = rng.randrange(len(members))
        name, what = members[spot]
        odd = rng.choice(
            (
                name + rng.choice(HOSTILE).replace("\x00", "").replace("\ud800", ""),
                f"../{name}",
                f"/{name}",
                "x" * 300,
                ".",
                "",
                f"{name}/{name}",
                rng.choice(members)[0],
                "na\udcff",
            )
        )
        link = Link(rng.choice(("../../x", "/etc/passwd", "\x1b[31m", name)))
        members[spot] = rng.choice(((odd, what), (name, link), (odd, link), (odd, Folder())))
    archive: Archive | Text = Archive(tuple(members))
    if rng.random() < _DAMAGED:
        archive = Text(damaged(rng, archive.bytes(), b"x" * 512))
    name = rng.choice(("t.tar", "t.tar", "t.tar.xz", "t.tar.gz"))
    ways = (("discover", name), ("profile", "capture", name), ("discover", name, "--json"))
    return _chosen(rng, _input(name, archive, *ways))


_OPEN_PARTS = ("config", "expect", "steps", "containers", "limits", "devices", "let", "machines")
"""Keys of a case with the largest variety of values, and the most code that reads them."""

_SAID = f"{_PROGRAM} answers"
"""A program that gives the reference's answers to other questions."""


def _case_file(rng: Random, root: Node) -> Document | Text:
    """A case file with changes anywhere, or more of them where a case says most."""
    if rng.random() < _ANYWHERE:
        return _file(rng, root, "yaml", bases.document(bases.CONFIGURATION))
    for _ in range(rng.choice((1, 1, 1, 2))):
        root = changed_below(rng, root, _OPEN_PARTS)
    return Document(root, "yaml", escaped=rng.random() < 0.5)


def _answering(rng: Random, file: File, *ways: tuple[str, ...]) -> dict[str, Any]:
    """A trial of a case file, with or without a program that is asked the case's questions."""
    chosen = _chosen(rng, _input("own.yaml", file, *ways, has_lines=True))
    chosen["files"]["answers"] = Lines(
        tuple(
            Document(made(plain), "line", before=op.encode() + b"\t")
            for op, plain in bases.answers()
        )
    )
    return chosen


def _case(rng: Random) -> dict[str, Any]:
    text = rng.choice((bases.CASES, bases.EVERY_FIELD))
    program = ("--implementation", _SAID)
    check = ("check", "--cases", "own.yaml", "--select", "own-case", *_ON)
    replay = ("replay", "own.yaml", *_ON)
    return _answering(
        rng,
        _case_file(rng, bases.document(text)),
        replay,
        replay,
        (*replay, "--json"),
        (*replay, *program),
        ("case", "list", "--cases", "own.yaml", "own-*"),
        ("case", "show", "own-case", "--cases", "own.yaml", *_ON),
        ("case", "show", "own-case", "--cases", "own.yaml"),
        ("case", "show", "merging", "--cases", "own.yaml"),
        ("promote", "own.yaml", "--id", "new-case", "--into", "made.yaml"),
        ("diff", "own.yaml", *_ON, "--right", "false", "--tries", "1"),
        check,
        (*check, "--quick"),
        (*check, *program),
        (*check, *program, "--as", "documented"),
        (*check, *program, "--level", "invariants"),
    )


def _finding(rng: Random) -> dict[str, Any]:
    """A file that `numaproof fuzz` would have written."""
    text = rng.choice((bases.CASES, bases.EVERY_FIELD))
    program = ("--implementation", _SAID)
    promote = ("promote", "own.yaml", "--id", "new-case", "--into", "made.yaml")
    check = ("check", "--cases", "own.yaml", "--select", "own-case")
    return _answering(
        rng,
        _case_file(rng, bases.finding(text)),
        ("replay", "own.yaml"),
        ("replay", "own.yaml", "--kubernetes", "1.36"),
        ("replay", "own.yaml", *program),
        check,
        (*check, *program),
        promote,
        promote,
        (*promote, *program),
        ("case", "show", "own-case", "--cases", "own.yaml"),
        ("case", "list", "--cases", "own.yaml", "own-*"),
        ("diff", "own.yaml", "--right", _SAID, "--tries", "1"),
        ("diff", "own.yaml", "--right", "false", "--tries", "1"),
    )


def _merge(rng: Random) -> dict[str, Any]:
    """A case of merges alone, in which changes are dense."""
    whole = bases.document(bases.CASES)
    steps = json.loads(Document(whole, "json").bytes())["cases"][1]
    root = made({"cases": [steps]})
    file = _file(rng, root, "yaml", whole)
    return _chosen(rng, _input("own.yaml", file, ("replay", "own.yaml", *_ON), has_lines=True))


def _configuration(rng: Random) -> dict[str, Any]:
    file = _file(rng, bases.document(bases.CONFIGURATION), "yaml", bases.document(bases.PODS))
    pods = Document(bases.document(bases.PODS), "yaml")
    ways = (
        ("config", "check", "c.yaml", *_ON),
        ("config", "check", "c.yaml", *_ON, "--json", "--lenient"),
        # Without it, most mutations end at a field that is unknown.
        ("simulate", *_ON, "--config", "c.yaml", "pods.yaml", "--lenient"),
        ("upgrade", "--from", "1.33", "--to", "1.36", *_ON, "--config", "c.yaml", "--lenient"),
    )
    chosen = _chosen(rng, _input("c.yaml", file, *ways, has_lines=True))
    chosen["files"]["pods.yaml"] = pods
    return chosen


def _pods(rng: Random) -> dict[str, Any]:
    file = _file(rng, bases.document(bases.PODS), "yaml", bases.document(bases.CONFIGURATION))
    simulate = ("simulate", *_ON, "--config", "c.yaml", "pods.yaml")
    nic = ("--devices", "vendor.example/nic=2@0")
    ways = (
        (*simulate, *nic),
        (*simulate, "--explain", "--lenient"),
        (*simulate, *nic, "--json", "--lenient"),
        (*simulate, "--replicas", "1", "--out", "node.html", "--lenient"),
        (
            "upgrade",
            "--from",
            "1.33",
            "--to",
            "1.36",
            *_ON,
            "--pods",
            "pods.yaml",
            *nic,
            "--lenient",
        ),
    )
    chosen = _chosen(rng, _input("pods.yaml", file, *ways, has_lines=True))
    chosen["files"]["c.yaml"] = Document(bases.document(bases.CONFIGURATION), "yaml")
    return chosen


def _devices(rng: Random) -> dict[str, Any]:
    file = _file(rng, bases.document(bases.DEVICES), "yaml")
    way = ("simulate", *_ON, "--config", "c.yaml", "pods.yaml", "--devices", "d.yaml")
    chosen = _chosen(rng, _input("d.yaml", file, way, has_lines=True))
    chosen["files"]["c.yaml"] = Document(bases.document(bases.CONFIGURATION), "yaml")
    chosen["files"]["pods.yaml"] = Document(bases.document(bases.PODS), "yaml")
    return chosen


def _checkpoint(rng: Random) -> dict[str, Any]:
    every = bases.checkpoints()
    name = rng.choice(sorted(every))
    roots = [made(one) for one in every.values()]
    file = _file(rng, made(every[name]), "line", *roots)
    files: dict[str, File] = {
        f"node/{one}": Document(made(plain), "line") for one, plain in every.items()
    }
    files[f"node/{name}"] = file
    files["c.yaml"] = Document(bases.document(bases.CONFIGURATION), "yaml")
    upgrade = ("upgrade", "--from", "1.36", "--to", "1.37", *_ON, "--state", "node")
    ways = (
        (*upgrade, "--config", "c.yaml"),
        (*upgrade, "--json"),
        ("state", "check", f"node/{name}", *_ON, "--config", "c.yaml"),
        ("state", "check", f"node/{name}", *_ON),
    )
    return {"files": files, "subject": name, "args": rng.choice(ways)}


def _known_failures(rng: Random) -> dict[str, Any]:
    file = _file(rng, bases.document(bases.KNOWN_FAILURES), "yaml")
    way = (
        "check",
        "--select",
        "example-besteffort-runs-shared",
        *_ON,
        "--known-failures",
        "k.yaml",
    )
    return _chosen(rng, _input("k.yaml", file, way, has_lines=True))


def _lines(rng: Random, roots: list[Node], *, pack: bool = False) -> Lines:
    """The documents on lines of their own, of which one or two are changed."""
    lines: list[Text | Document] = [Document(one, "line") for one in roots]
    for _ in range(rng.choice((1, 1, 2))):
        spot = rng.randrange(len(lines))
        lines[spot] = _file(rng, roots[spot], "line", *roots)
    way = rng.randrange(12)
    if way == 0:
        rng.shuffle(lines)
    elif way == 1:
        lines.pop(rng.randrange(len(lines)))
    elif way == 2:
        lines.append(rng.choice(lines))
    return Lines(tuple(lines), "xz" if pack else "")


def _recording(rng: Random) -> dict[str, Any]:
    config = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
    pod = {"pod": "a", "containers": {"app": {"limits": {"cpu": 2, "memory": "64Mi"}}}}
    steps = [{"start": {}}, {"admit": pod}, {"state": {}}]
    told = dict(bases.answers())
    case = {
        "id": "recorded",
        "title": "As it was",
        "requirements": ["CPU-STATIC-001"],
        "level": "kubelet",
        "config": config,
        "machine": bases.requests()[1]["args"]["machine"],
        "steps": [{**one, "expect": "anything"} for one in steps],
    }
    calls = []
    for op in ("start", "state", "admit", "state"):
        response = {key: one for key, one in told[op].items() if key != "id"}
        calls.append({"op": op, "answer": response})
    source = {
        "format": 1,
        "name": "kubelet",
        "version": "1",
        "language": "Go",
        "kubernetes": "1.37",
        "numaproof": "0",
        "recorded": "2026-01-01",
    }
    recording = {"case": case, "calls": calls, "seed": 7}
    lines = _lines(rng, [made(source), made(recording), made(recording)], pack=True)
    file: File = lines
    if rng.random() < _DAMAGED / 2:
        file = Text(damaged(rng, lines.bytes(), b"x" * 99))
    return _chosen(rng, _input("r.jsonl.xz", file, ("replay", "r.jsonl.xz"), has_lines=True))


def _request(rng: Random) -> dict[str, Any]:
    """What a harness asks of the reference as a program."""
    roots = [made(one) for one in bases.requests()]
    ways = ("reference",), ("reference", "--documented")
    return _chosen(rng, _input("stdin", _lines(rng, roots), *ways, stdin="stdin")) | {"subject": ""}


def _answer(rng: Random) -> dict[str, Any]:
    """What a program answers."""
    told = bases.answers()
    roots = [made(one) for _, one in told]
    lines: list[Text | Document] = [
        Document(root, "line", before=op.encode() + b"\t")
        for (op, _), root in zip(told, roots, strict=True)
    ]
    # What is read first is changed most, and hello is all that many commands read.
    for _ in range(rng.choice((1, 1, 2))):
        spot = rng.choice((0, 0, rng.randrange(len(lines)), rng.randrange(len(lines))))
        file = _file(rng, roots[spot], "line", *roots)
        before = told[spot][0].encode() + b"\t"
        if isinstance(file, Document):
            lines[spot] = Document(file.root, "line", file.escaped, before)
        else:
            lines[spot] = Text(before + file.content)
    program = ("--implementation", f"{_PROGRAM} answers")
    own = ("--cases", "own.yaml", "--select", "own-case", *_ON)
    ways = (
        ("check", *own, *program),
        ("check", *own, *program, "--json"),
        ("replay", "own.yaml", *_ON, *program),
        ("doctor", f"{_PROGRAM} answers"),
        ("doctor", f"{_PROGRAM} answers", "--json"),
        ("record", "--seeds", "0:1", "--merges", "0:1", "--out", "made.jsonl.xz", *program),
        ("promote", "finding.yaml", "--id", "new-case", "--into", "made.yaml", *program),
        ("upgrade", "--from", "1.36", "--to", "1.37", *_ON, *program),
        ("campaign", "--seeds", "0:1", "--no-cases", *program),
        ("fuzz", "--max-examples", "1", *program),
        ("diff", "--seeds", "0:1", "--tries", "1", "--right", f"{_PROGRAM} answers"),
    )
    return {
        "files": {
            "answers": Lines(tuple(lines)),
            "own.yaml": Document(bases.document(bases.CASES), "yaml"),
            "finding.yaml": Document(bases.finding(), "yaml"),
        },
        "args": rng.choice(ways),
    }


def _journal(rng: Random) -> dict[str, Any]:
    """The file from which a campaign resumes; the workers are not reached in a trial."""
    roots = [made(one) for one in bases.journal()]
    way = (*bases.CAMPAIGN, "--out", "out")
    made_ = _input("out/events.jsonl", _lines(rng, roots), way)
    return _chosen(rng, made_) | {"subject": "events.jsonl", "has_lines": False}


def _board(rng: Random) -> dict[str, Any]:
    """What a site is made of: the events of a run, a campaign's journal, or board data."""
    ways = tuple(
        ("board", "in", "--out", "site", *more) for more in ((), ("--json",), ("--data", "data"))
    )
    if rng.random() < 0.4:
        file: File = _file(rng, made(bases.board_data()), "line")
        return _chosen(rng, _input("in/run.board.json", file, *ways))
    roots = [made(one) for one in rng.choice((bases.events, bases.journal))()]
    return _chosen(rng, _input("in/events.jsonl", _lines(rng, roots), *ways))


def _example(rng: Random) -> dict[str, Any]:
    """A file of a database of examples."""
    files: dict[str, File] = {}
    for number in range(rng.randint(1, 3)):
        name = rng.choice(
            (f"db/{number:016x}/{number:016x}", f"db/{number}", "db/.hypothesis-keys")
        )
        files[name] = Text(damaged(rng, bytes(range(40)), b"\x00" * 16))
    way = ("fuzz", "--profile", "explore", "--seed", "1", "--max-examples", "1")
    way += ("--database", "db")
    return {"files": files, "args": way}


_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("check", "--select", "own-*", "--machine", "laptop-4c8t", "--kubernetes", "1.36"),
    ("check", "--repeat", "2", "--as", "either", "--today", "2026-01-01", "--exclude", "x"),
    ("case", "list", "area:memory", "--exclude", "CPU-*"),
    ("case", "show", "static-gives-what-the-limit-says", "--machine", "laptop-4c8t"),
    ("profile", "show", "laptop-4c8t"),
    ("profile", "tree", "laptop-4c8t", "--to", "x.tar"),
    ("profile", "capture", "tree", "--name", "x", "--to", "x.yaml"),
    ("discover", "tree", "--json", "--kubernetes", "1.36"),
    ("simulate", "--machine", "laptop-4c8t", "--config", "c.yaml", "--replicas", "1", "pods.yaml"),
    ("simulate", "--machine", "laptop-4c8t", "--config", "c.yaml", "pods.yaml", "--devices",
     "a.b/c=1@0"),
    ("upgrade", "--from", "1.33", "--to", "1.36", "--machine", "laptop-4c8t", "--state", "node"),
    ("config", "check", "c.yaml", "--machine", "laptop-4c8t"),
    ("state", "check", "c.yaml", "--machine", "laptop-4c8t"),
    ("replay", "own.yaml", "--machine", "laptop-4c8t", "--select", "own-case"),
    ("promote", "own.yaml", "--id", "a", "--requirement", "CPU-STATIC-001", "--title", "t"),
    ("record", "--implementation", "false", "--out", "r.jsonl.xz", "--seeds", "0:1"),
    ("doctor", "false"),
    ("doctor", "--timeout", "1s", "--", "false", "x"),
    ("diff", "--right", "false", "--seeds", "0:1", "--timeout", "1s", "--examples", "1"),
    ("fuzz", "--implementation", "false", "--max-examples", "1", "--seed", "1"),
    ("fuzz", "--profile", "explore", "--database", "db", "--implementation", "false"),
    ("campaign", "--implementation", "false", "--seeds", "0:1", "--machine", "laptop-4c8t"),
    ("campaign", "--scheduler", "tcp://127.0.0.1:9", "--implementation", "false"),
    ("init", "new", "--language", "go", "--name", "x", "--source", "y"),
    ("features", "--json"),
)  # fmt: skip


def _arguments(rng: Random) -> dict[str, Any]:
    args = list(rng.choice(_COMMANDS))
    for _ in range(rng.choice((1, 1, 2))):
        spot = rng.randrange(len(args))
        way = rng.randrange(6)
        if way == 0:
            args.pop(spot)
        elif way == 1:
            args.insert(spot, rng.choice(rng.choice(_COMMANDS)))
        elif way == 2:
            args.insert(spot, args[spot])
        else:
            text = rng.choice((*TEXTS, "\udcff", "-", "own.yaml", "tree", "c.yaml", "/dev/null"))
            args[spot] = rng.choice((text, args[spot] + text, text + args[spot]))
        args = args or ["check"]
    if args[0] == "check" and "--select" not in args:
        # No bundled case is meant: a whole check takes minutes.
        args[1:1] = ["--cases", "own.yaml", "--select", "own-case", *_ON]
    # The kernel passes no NUL, and nothing longer than 128 KiB.
    kept = tuple(one.replace("\x00", "")[:100_000] for one in args)
    files: dict[str, File] = {
        "own.yaml": Document(bases.document(bases.CASES), "yaml"),
        "c.yaml": Document(bases.document(bases.CONFIGURATION), "yaml"),
        "pods.yaml": Document(bases.document(bases.PODS), "yaml"),
    }
    return {"files": files, "args": kept}


KINDS: dict[str, Callable[[Random], dict[str, Any]]] = {
    "profile": _profile,
    "tree": _tree,
    "archive": _archive,
    "case": _case,
    "finding": _finding,
    "merge": _merge,
    "configuration": _configuration,
    "pods": _pods,
    "devices": _devices,
    "checkpoint": _checkpoint,
    "known-failures": _known_failures,
    "recording": _recording,
    "request": _request,
    "answer": _answer,
    "journal": _journal,
    "board": _board,
    "example": _example,
    "arguments": _arguments,
}
"""What makes the parts of a trial, by the name of the kind."""
