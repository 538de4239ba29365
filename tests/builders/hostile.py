"""Programs that do what no implementation should: each is a line of data.

A program answers as the reference does, through `answer(request)`, and does its mischief at a
request with a name. `state` is the state directory of the last start, `outside` a folder that
nobody may touch, and `held` is open in all that the program starts.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

PRELUDE = """
import ctypes, json, msgspec, os, resource, signal, socket, subprocess, sys, threading, time
from numaproof.protocol import codec, messages
from numaproof.reference.implementation import Reference
held = os.open(os.environ["HELD"], os.O_WRONLY)
outside = os.environ["OUTSIDE"]
name = "cpu_manager_state"
state, done, admitted = "", False, False
resource.setrlimit(resource.RLIMIT_AS, (1 << 30,) * 2)
reference = Reference()
def say(text):
    sys.stdout.buffer.write(text if isinstance(text, bytes) else text.encode())
    sys.stdout.flush()
gone, calls = "", []
def served(op, args):
    if getattr(args, "state_dir", None) == gone:
        args = msgspec.structs.replace(args, state_dir=os.environ["OWN"])
    return reference.call(op, args)
def made(request):
    calls.append((request.op, codec.decode_args(request)))
    return codec.encode_answer(request.id, served(*calls[-1]))
def answer(request):
    say(made(request))
def stay():
    while True: time.sleep(1000)
def child(body=stay, leave=True):
    if os.fork() == 0:
        if leave: os.setsid()
        body()
        os._exit(0)
def daemon():
    child(child)
def libc(name, *words):
    return getattr(ctypes.CDLL(None), name)(*words)
def put(make, file=name):
    if os.path.lexists(os.path.join(state, file)): os.remove(os.path.join(state, file))
    make(os.path.join(state, file))
def swap(make, folder=None):
    # From now on it keeps its own state elsewhere: who writes there is not this program.
    global gone, reference
    gone, reference = state, Reference()
    for call in calls: served(*call)
    folder = folder or state
    os.rename(folder, folder + "-away")
    make(folder)
def sparse(path):
    with open(path, "wb") as file: file.truncate(20 << 30)
def nest(depth):
    here = os.open(state, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        here, old = os.open("d", os.O_RDONLY, dir_fd=here), here
        os.close(old)
    os.close(here)
def bind(path):
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(os.path.dirname(path)); server.bind(os.path.basename(path)); os.chdir("/")
for line in sys.stdin.buffer:
    request = codec.decode(line, codec.Request)
    ready = request.op != "state" or admitted
    admitted = admitted or request.op == "admit"
    if request.op == "start": state = json.loads(line)["args"]["state_dir"]
"""


@dataclass(frozen=True)
class Hostile:
    """A program.

    Attributes:
        at: the operation at which it does what it does, the first time.
        body: what it does; afterwards it answers, unless it has ended.
        words: what the report says of it, a regular expression; empty where all is well, for the
            harness has nothing to do with it.
        when: whether it does so before it makes its answer, once it is made, or after it.
    """

    at: str
    body: str
    words: str = ""
    when: Literal["before", "made", "after"] = "before"

    def source(self) -> str:
        """The program."""
        mischief = (
            f"    if request.op == {self.at!r} and ready and not done:\n        done = True\n"
        )
        mischief += "".join(f"        {line}\n" for line in self.body.splitlines())
        parts = ["    reply = made(request)\n", "    say(reply)\n"]
        parts.insert(("before", "made", "after").index(self.when), mischief)
        return PRELUDE + "".join(parts)


def _state(body: str, words: str) -> Hostile:
    return Hostile("state", body, words, when="made")


STATE = {
    "link-in-state": _state(
        "put(lambda path: os.symlink(f'{outside}/kept', path))", "is a symbolic link, not a file"
    ),
    "link-to-zero": _state("put(lambda path: os.symlink('/dev/zero', path))", "symbolic link"),
    "link-to-proc": _state("put(lambda path: os.symlink('/proc/self/mem', path))", "symbolic link"),
    "link-to-itself": _state("put(lambda path: os.symlink(path, path))", "symbolic link"),
    "link-to-nowhere": _state("put(lambda path: os.symlink('/nonexistent', path))", "symbolic"),
    "pipe-in-state": _state("put(os.mkfifo)", "is a named pipe, not a file"),
    "folder-in-state": _state("put(os.mkdir)", "is a directory, not a file"),
    "socket-in-state": _state("put(bind)", "is a socket, not a file"),
    "endless-in-state": _state("put(sparse)", "larger than 64 MiB"),
    "garbage-in-state": _state("put(lambda path: open(path, 'w').write('x' * 9999))", ""),
    "state-removed": _state("import shutil; shutil.rmtree(state)", "was removed"),
    "state-is-a-link": _state(
        "swap(lambda path: os.symlink(outside, path))", "replaced by a symbolic link"
    ),
    "state-is-a-pipe": _state("swap(os.mkfifo)", "replaced by a named pipe"),
    "state-is-a-file": _state("swap(lambda path: open(path, 'w').close())", "replaced by a file"),
    "parent-is-a-link": _state(
        "swap(lambda path: os.symlink(outside, path), os.path.dirname(state))",
        "folder above the state directory was removed or replaced",
    ),
    "parent-is-gone": _state(
        "swap(lambda path: None, os.path.dirname(state))", "folder above the state directory"
    ),
    "many-files": _state(
        "for n in range(20_000): os.close(os.open(f'{state}/{n}', os.O_CREAT))",
        "more than 10000 entries",
    ),
    "deep-folders": _state("nest(1000)", ""),
    "no-utf-8-names": _state("open(os.fsencode(state) + b'/\\xff', 'w').close()", "xff"),
    "escape-names": _state("os.close(os.open(f'{state}/\\x1b[2J', os.O_CREAT))", "x1b"),
    "closed-folders": _state("os.mkdir(f'{state}/d'); os.chmod(f'{state}/d', 0)", ""),
    "sockets-and-links-beside": _state(
        "bind(f'{state}/s'); os.symlink(outside, f'{state}/l'); os.mkfifo(f'{state}/p')", ""
    ),
}
"""What a program leaves in its state directory, in which the harness changes files."""

CHILDREN = {
    "child": Hostile("start", "child(leave=False)"),
    "own-session": Hostile("start", "child()"),
    "daemon": Hostile("start", "daemon()"),
    "daemons-200": Hostile("start", "for _ in range(200): child()"),
    "daemon-that-ignores-signals": Hostile(
        "start", "for one in (1, 2, 3, 15): signal.signal(one, signal.SIG_IGN)\ndaemon()"
    ),
    "relay": Hostile(
        "start", "def relay():\n    while os.fork() == 0: pass\n    os._exit(0)\nchild(relay)"
    ),
    "again-and-again": Hostile(
        "start",
        "def again():\n    while True:\n        pid = os.fork()\n        if not pid: stay()\n"
        "        os.waitpid(pid, 0)\nchild(again)\nchild(again)",
    ),
    "tree-of-forks": Hostile(
        "start",
        "def grow(n):\n    for _ in range(2): child(lambda: grow(n - 1) if n else stay())\n"
        "    stay()\nchild(lambda: grow(4))",
    ),
    "subreaper": Hostile("start", "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\ndaemon()"),
    "nohup": Hostile(
        "start", "subprocess.Popen(['nohup', 'setsid', 'sleep', '999'], stderr=-3, pass_fds=[held])"
    ),
    "no-environment": Hostile(
        "start", "subprocess.Popen(['/bin/sleep', '999'], env={}, pass_fds=[held])"
    ),
    "thread": Hostile("start", "threading.Thread(target=stay, daemon=True).start()"),
    "stopped-child": Hostile("start", "child(lambda: os.kill(os.getpid(), signal.SIGSTOP))"),
    "kills-its-supervisor": Hostile(
        "start", "daemon(); os.kill(os.getppid(), 9); time.sleep(60)", "killed its supervisor"
    ),
    "kills-its-group": Hostile("start", "daemon(); os.killpg(0, 9)", "signal SIGKILL"),
    "daemon-and-death": Hostile("start", "daemon(); os._exit(3)", "exit code 3|no answer"),
    "daemon-without-output": Hostile(
        "start", "child(lambda: (os.close(1), os.close(2), stay()))\nos._exit(3)", "exit code 3"
    ),
}
"""What a program starts and leaves behind."""

DEATHS = {
    "exits": Hostile("start", "os._exit(0)", "exit code 0"),
    "aborts": Hostile("start", "os.abort()", "signal SIGABRT"),
    "real-time-signal": Hostile("start", "os.kill(os.getpid(), 40)", "signal 40"),
    "first-real-time-signal": Hostile("start", "os.kill(os.getpid(), 34)", "signal SIGRTMIN"),
    "stops-itself": Hostile("start", "os.kill(os.getpid(), signal.SIGSTOP)", "no answer"),
    "closes-output": Hostile("start", "os.close(1)\nstay()", "closed its standard output"),
    "closes-input": Hostile("start", "os.close(0)\nos._exit(5)", "exit code 5"),
    "closes-all": Hostile("start", "os.closerange(0, 99)\nstay()", "closed its standard output"),
    "dies-after-answer": Hostile("start", "os._exit(4)", "after its answer", when="after"),
    "stack-overflow": Hostile("start", "ctypes.string_at(0)", "signal SIGSEGV"),
    "out-of-memory": Hostile(
        "start",
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 28,) * 2)\nbytes(1 << 30)",
        "MemoryE|code 1",
    ),
    "dies-at-admit": Hostile("admit", "os._exit(6)", "exit code 6"),
}
"""How a program ends."""

OUTPUT = {
    "silence": Hostile("start", "stay()", "no answer"),
    "flood": Hostile("start", "while True: say(b'x' * 65536)", "longer than|no answer"),
    "flood-of-lines": Hostile("start", "while True: say(b'x\\n' * 9999)", "is not JSON|no answer"),
    "flood-of-log": Hostile("start", "while True: os.write(2, b'x' * 65536)", "no answer"),
    "garbage": Hostile("start", "say(os.urandom(999).replace(b'\\n', b'') + b'\\n')", "line was"),
    "nul-bytes": Hostile("start", "say(b'\\0' * 99 + b'\\n')", "line was"),
    "deep-json": Hostile("start", "say(b'[' * 99999 + b'\\n')", "line was|deep|recursion"),
    "two-answers": Hostile("start", "answer(request)", "no request asked for|id"),
    "banner": Hostile("start", "say('welcome\\n')", "welcome"),
    "half-an-answer": Hostile("start", "say('{\"id\"'); stay()", "no answer"),
}
"""What a program writes."""

TRICKS = {
    "outlives-its-supervisor": Hostile(
        "start",
        "libc('prctl', 1, 0, 0, 0, 0); daemon(); os.kill(os.getppid(), 9); stay()",
        "killed its supervisor",
    ),
    "kills-its-parents-group": Hostile(
        "start", "daemon(); os.killpg(os.getpgid(os.getppid()), 9); stay()", "killed its supervisor"
    ),
    "stops-its-supervisor": Hostile("start", "daemon(); os.kill(os.getppid(), signal.SIGSTOP)"),
    "traces-its-supervisor": Hostile("start", "daemon(); libc('ptrace', 16, os.getppid(), 0, 0)"),
    "writes-to-its-parents-files": Hostile(
        "start",
        "for fd in os.listdir(f'/proc/{os.getppid()}/fd'):\n"
        "    try: os.write(os.open(f'/proc/{os.getppid()}/fd/{fd}', os.O_RDWR | 2048), b'x' * 9)\n"
        "    except OSError: pass",
    ),
    "sibling": Hostile("start", "if libc('syscall', 56, 0x8011, 0, 0, 0, 0) == 0: stay()"),
    "process-namespace": Hostile("start", "libc('unshare', 0x20000000); daemon()"),
    "another-user": Hostile("start", "child(lambda: (os.getuid() or os.setuid(65534), stay()))"),
    "becomes-cat": Hostile("start", "os.execvp('cat', ['cat'])", "no answer"),
    "limits-itself": Hostile(
        "start", "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))", "File too large|SIGXFSZ"
    ),
    "working-folder-is-gone": Hostile(
        "start", "os.mkdir(f'{state}/d'); os.chdir(f'{state}/d'); os.rmdir(f'{state}/d')"
    ),
    "closed-state": _state("os.chmod(state, 0)", "" if os.getuid() == 0 else "can't be read"),
    "fills-the-disk": _state(
        "for n in range(20):\n    with open(f'{state}/{n}', 'wb') as f: f.write(bytes(9 << 20))",
        "",
    ),
    "hard-link-to-outside": _state("put(lambda path: os.link(f'{outside}/kept', path))", ""),
    "link-that-comes-and-goes": _state(
        "def flicker():\n    while True:\n"
        "        put(lambda path: os.symlink(f'{outside}/kept', path))\n"
        "        put(lambda path: open(path, 'w').close())\n"
        "threading.Thread(target=flicker, daemon=True).start()",
        # Whoever looks between two links sees a file of the implementation.
        "in the state directory|1 case run|Passed|No findings|2 cases"
        "|cpu_manager_state|at stage cpu",
    ),
    "log-of-escapes": Hostile(
        "start", "os.write(2, b'\\x1b[2J\\x1b]0;gone\\x07' * 9999); os._exit(7)", "exit code 7"
    ),
    "wide-answer": Hostile("start", "say(b' ' * (1 << 20))", when="made"),
    "gigantic-number": Hostile("start", "say(b'{\"id\":' + b'9' * 5000 + b'}\\n')", "line was"),
    "no-number": Hostile("start", 'say(\'{"id":NaN,"ok":{}}\\n\')', "line was"),
    "two-ids": Hostile(
        "start",
        "reply = reply.replace(b'{', b'{\"id\":77,', 1)[:-2] + b',\"id\":78}\\n'",
        "78",
        when="made",
    ),
    "half-a-character": Hostile(
        "start",
        'say(\'{"id":%d,"fault":{"message":"\\\\ud800","trace":""}}\\n\' % request.id)',
        "line was|boom|fault",
    ),
    "half-a-line-and-death": Hostile("start", "say(reply[:9]); os._exit(8)", "code 8", when="made"),
    "same-answer-again": Hostile("start", "say(reply)", "no request asked for", when="after"),
    "answer-in-advance": Hostile(
        "start",
        "say(reply.replace(b'%d' % request.id, b'%d' % (request.id + 1), 1))",
        # Where it is read after the next request, it is a wrong answer to that.
        "no request asked for|read no request|the line was",
        when="after",
    ),
    "closes-input-and-stays": Hostile("start", "os.close(0)\nstay()", "no answer", when="before"),
}
"""What a second look came up with."""

HOSTILE = {**STATE, **CHILDREN, **DEATHS, **OUTPUT, **TRICKS}
"""All of them, by name."""
