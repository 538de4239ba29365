"""The kinds of input, with strategies for their trials."""

from __future__ import annotations

import io
import lzma
import shlex
import sys
import tarfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import strategies as st

from numaproof.fakesys.entries import Directory, Symlink
from robustness import bases
from robustness.mutations import (
    HOSTILE,
    TEXTS,
    changed_documents,
    damaged_files,
    poisoned_documents,
    serialize,
)
from robustness.trials import File, Folder, Link, Trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from robustness.mutations import Draw, Form

ANSWERING = shlex.join([sys.executable, "-IS", str(Path(__file__).with_name("program.py"))])
ANSWERING += " answers"
"""A program that gives the reference's answers to other requests."""

ON = ("--machine", bases.MACHINE)


@dataclass(frozen=True)
class Sound:
    """A file before mutation.

    Attributes:
        documents: returns alternatives for its content; for lines, each is a list of documents.
        form: its format.
        lines: whether each line is a document.
        prefixes: text before each line.
    """

    documents: Callable[[], list[Any]]
    form: Form = "yaml"
    lines: bool = False
    prefixes: Callable[[], list[bytes]] = list

    def write(self, document: Any) -> bytes:
        """Generates a document, or a list of them, as the file's content."""
        if not self.lines:
            return serialize(document, self.form)
        heads = self.prefixes() or [b""] * len(document)
        lines = zip(heads, document, strict=True)
        return b"".join(head + serialize(one, "line") + b"\n" for head, one in lines)


def _texts(*names: str) -> Callable[[], list[Any]]:
    return lambda: [bases.document(name) for name in names]


def _findings() -> list[Any]:
    return [bases.finding(name) for name in ("own", "fields")]


SOUND: dict[str, Sound] = {
    "m.yaml": Sound(bases.profiles),
    "own.yaml": Sound(_texts("own", "fields")),
    "merge.yaml": Sound(lambda: [{"cases": bases.document("own")["cases"][1:]}]),
    "finding.yaml": Sound(_findings),
    "c.yaml": Sound(_texts("c")),
    "product.yaml": Sound(bases.products),
    "pods.yaml": Sound(_texts("pods")),
    "d.yaml": Sound(_texts("d")),
    "k.yaml": Sound(_texts("k")),
    **{
        f"node/{name}": Sound(partial(lambda name: [bases.checkpoints()[name]], name), "line")
        for name in ("cpu_manager_state", "memory_manager_state")
    },
    "r.jsonl.xz": Sound(lambda: [bases.recording()], lines=True),
    "requests": Sound(lambda: [list(bases.requests())], lines=True),
    "answers": Sound(
        lambda: [[one for _, one in bases.answers()]],
        lines=True,
        prefixes=lambda: [op.encode() + b"\t" for op, _ in bases.answers()],
    ),
    "out/events.jsonl": Sound(lambda: [list(bases.journal())], lines=True),
    "runs/run.board.json": Sound(lambda: [bases.board_data()], "line"),
    "runs/events.jsonl": Sound(lambda: [list(bases.events()), list(bases.journal())], lines=True),
}
"""All files that a trial may need, by path; `{}` in its arguments is the mutated one."""


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of input file.

    Attributes:
        files: the files, one of which is mutated (`{}` in a command).
        ways: the commands that read it.
        keys: where most mutations are made.
        lines: whether an error must name the line.
        must_name_file: whether an error must name the file.
        stdin: the file on standard input.
    """

    ways: tuple[str, ...]
    files: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    lines: bool = True
    must_name_file: bool = True
    stdin: str = ""

    def commands(self, name: str) -> list[tuple[str, ...]]:
        """Returns the arguments of the commands for one of the files."""
        return [
            tuple(ANSWERING if word == "PROGRAM" else word for word in way.format(name).split())
            for way in self.ways
        ]


FILES = msgspec.convert(bases.document("kinds"), dict[str, Kind])
_COMMANDS = FILES.pop("arguments").commands("")


@st.composite
def _mutated_files(draw: Draw, sound: Sound, document: Any, keys: tuple[str, ...]) -> bytes:
    """Generates the content of a file with one to three changes or damaged bytes."""
    if draw(st.integers(0, 4)) == 4:
        other = sound.write(draw(st.sampled_from(sound.documents())))
        return draw(damaged_files(sound.write(document), other))
    for _ in range(draw(st.sampled_from((1, 1, 2, 3)))):
        document = draw(changed_documents(document, keys=keys if draw(st.booleans()) else ()))
    return serialize(document, sound.form, ascii_only=draw(st.booleans()))


@st.composite
def _mutated_lines(draw: Draw, sound: Sound, documents: list[Any]) -> bytes:
    """Generates lines, with one or two changed and possibly one missing, repeated or moved."""
    heads = sound.prefixes() or [b""] * len(documents)
    lines = [head + serialize(one, "line") for head, one in zip(heads, documents, strict=True)]
    for _ in range(draw(st.sampled_from((1, 1, 2)))):
        # Mostly changes the first lines, because many commands read no further.
        spot = draw(st.just(0) | st.integers(0, len(lines) - 1))
        body = draw(_mutated_files(Sound(lambda: documents, "line"), documents[spot], ()))
        lines[spot] = heads[spot] + body
    ways = st.integers(0, 11)
    way, spot = draw(ways), draw(st.integers(0, len(lines) - 1))
    if way == 11:
        lines = draw(st.permutations(lines))
    elif way == 10:
        lines.pop(spot)
    elif way == 9:
        lines.append(lines[spot])
    return b"\n".join(lines) + b"\n"


def _pack(name: str, content: bytes) -> bytes:
    return lzma.compress(content, preset=0) if name.endswith(".xz") else content


def _read_by(args: tuple[str, ...], stdin: str) -> list[str]:
    """Returns the valid files that the arguments name, or whose folder they name."""
    words = {*" ".join(args).split(), stdin}
    return [name for name in SOUND if {name, name.partition("/")[0]} & words]


def sound_files(args: tuple[str, ...], stdin: str = "") -> dict[str, File]:
    """Returns the valid files that a command reads."""
    names = _read_by(args, stdin)
    return {n: _pack(n, SOUND[n].write(SOUND[n].documents()[0])) for n in names}


@st.composite
def _of_file(draw: Draw, kind: Kind) -> Trial:
    """Generates a trial with one mutated file."""
    name = draw(st.sampled_from(kind.files))
    sound = SOUND[name]
    args = draw(st.sampled_from(kind.commands(name)))
    document = draw(st.sampled_from(sound.documents()))
    if sound.lines:
        content = draw(_mutated_lines(sound, document))
    else:
        content = draw(_mutated_files(sound, document, kind.keys))
    into = args[args.index("--out") + 1] if "--out" in args and args[0] == "profile" else ""
    return Trial(
        args,
        sound_files(args, kind.stdin) | {name: _pack(name, content)},
        sound={} if name.endswith(".xz") else {name: sound.write(document)},
        subject=name.rpartition("/")[2] if kind.must_name_file else "",
        has_lines=kind.lines,
        stdin=kind.stdin,
        output_name=into,
        terminal=draw(st.booleans()),
    )


@st.composite
def _of_hostile_text(draw: Draw) -> Trial:
    """Generates a trial with unprintable text in one place."""
    kind = FILES[draw(st.sampled_from(list(FILES)))]
    name = draw(st.sampled_from(kind.files))
    args = draw(st.sampled_from(kind.commands(name)))
    content = SOUND[name].write(
        draw(poisoned_documents(draw(st.sampled_from(SOUND[name].documents()))))
    )
    files = sound_files(args, kind.stdin) | {name: _pack(name, content)}
    return Trial(args, files, stdin=kind.stdin, terminal=True)


@st.composite
def _tree_files(draw: Draw) -> dict[str, File]:
    """Generates a machine's tree, with some files replaced."""
    name = draw(st.sampled_from(("laptop-4c8t", "vm-no-numa", "vm-1-cpu")))
    files: dict[str, File] = {}
    for path, entry in bases.tree(name).items():
        link = Link(entry.target) if isinstance(entry, Symlink) else Folder()
        files[path] = entry if isinstance(entry, bytes) else link
        assert isinstance(entry, bytes | Symlink | Directory)
    amounts = st.sampled_from((*TEXTS, "4096", "2147483648", "9" * 4301))
    targets = st.sampled_from(("x", ".", "../..", "/etc/passwd", "/dev/zero"))
    for path in draw(st.lists(st.sampled_from(list(files)), min_size=1, max_size=5, unique=True)):
        was = files[path]
        odd = amounts.map(lambda text: text.encode(errors="surrogatepass") + b"\n")
        others = (targets.map(Link), st.just(Folder()), st.none(), odd, odd)
        if isinstance(was, bytes):
            others += (damaged_files(was, b"7\n"),)
        files[path] = draw(st.one_of(others))
    return {path: file for path, file in files.items() if file is not None}


@st.composite
def _of_tree(draw: Draw) -> Trial:
    ways = (("discover", "tree"), ("discover", "tree", "--json"))
    ways += (("profile", "capture", "tree", "--out", "made.yaml"),)
    files: dict[str, File] = {f"tree/{name}": one for name, one in draw(_tree_files()).items()}
    return Trial(draw(st.sampled_from(ways)), files, subject="tree", output_name="made.yaml")


@st.composite
def _of_archive(draw: Draw) -> Trial:
    members = list(draw(_tree_files()).items())
    for _ in range(draw(st.sampled_from((1, 1, 3)))):
        spot = draw(st.integers(0, len(members) - 1))
        name, what = members[spot]
        ending = draw(st.sampled_from(HOSTILE)).replace("\x00", "").replace("\ud800", "")
        names = (name + ending, f"../{name}", f"/{name}", "x" * 300, ".", "", f"{name}/{name}")
        odd = draw(st.sampled_from((*names, members[0][0], "na\udcff")))
        link = Link(draw(st.sampled_from(("../../x", "/etc/passwd", "\x1b[31m", name))))
        ways = ((odd, what), (name, link), (odd, link), (odd, Folder()))
        members[spot] = draw(st.sampled_from(ways))
    content = archive(members)
    if draw(st.integers(0, 4)) == 4:
        content = draw(damaged_files(content, b"x" * 512))
    name = draw(st.sampled_from(("t.tar", "t.tar.xz", "t.tar.gz")))
    ways = (("discover", name), ("profile", "capture", name), ("discover", name, "--json"))
    return Trial(draw(st.sampled_from(ways)), {name: content}, subject=name)


def archive(members: list[tuple[str, File]]) -> bytes:
    """Returns a tar file with these members."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", errors="surrogatepass") as opened:
        for name, what in members:
            member = tarfile.TarInfo(name)
            if isinstance(what, bytes):
                member.size = len(what)
                opened.addfile(member, io.BytesIO(what))
                continue
            member.type = tarfile.SYMTYPE if isinstance(what, Link) else tarfile.DIRTYPE
            member.linkname = what.target if isinstance(what, Link) else ""
            opened.addfile(member)
    return made.getvalue()


@st.composite
def _of_examples(draw: Draw) -> Trial:
    """Generates the files of a database of examples."""
    numbers = st.integers(0, 3)
    names = (numbers.map("db/{0:016x}/{0:016x}".format), numbers.map("db/{}".format))
    name = st.one_of(*names, st.just("db/.hypothesis-keys"))
    files = st.dictionaries(
        name, damaged_files(bytes(range(40)), b"\x00" * 16), min_size=1, max_size=3
    )
    args = ("fuzz", "--explore", "--seed", "1", "--examples", "1")
    return Trial((*args, "--database", "db"), draw(files))


@st.composite
def _of_arguments(draw: Draw) -> Trial:
    args = list(draw(st.sampled_from(_COMMANDS)))
    texts = st.sampled_from((*TEXTS, "\udcff", "-", "own.yaml", "tree", "c.yaml", "/dev/null"))
    for _ in range(draw(st.sampled_from((1, 1, 2)))):
        spot = draw(st.integers(0, len(args) - 1))
        word, text = args[spot], draw(texts)
        other = draw(st.sampled_from(draw(st.sampled_from(_COMMANDS))))
        odd = ([text], [word + text], [text + word])
        args[spot : spot + 1] = draw(st.sampled_from(([], [other, word], [word, word], *odd, *odd)))
        args = args or ["check"]
    if args[0] == "check" and "--select" not in args:
        # Matches no bundled case: a whole check takes minutes.
        args[1:1] = ["--cases", "own.yaml", "--select", "own-case", *ON]
    # The kernel accepts no NUL, and nothing longer than 128 KiB.
    kept = tuple(one.replace("\x00", "")[:100_000] for one in args)
    return Trial(kept, sound_files(("own.yaml", "c.yaml", "pods.yaml")))


KINDS: dict[str, st.SearchStrategy[Trial]] = {
    **{name: _of_file(kind) for name, kind in FILES.items()},
    "hostile": _of_hostile_text(),
    "tree": _of_tree(),
    "archive": _of_archive(),
    "example": _of_examples(),
    "arguments": _of_arguments(),
}
"""The trials of each kind of input."""
