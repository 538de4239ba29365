"""Each way in which a program can be broken is named by a sentence of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.diagnosis import Diagnosis

    Examine = Callable[..., Diagnosis]

PRINTED = 'print(json.dumps({"id": request["id"], **answer}), flush=True)'
BODY = '{"id": request["id"], **answer}'
STARTED = '{"ok": {"cpus": cpus, "memory": []}}'
MADE = "    driver = Driver()\n"
LOOP = "    for line in sys.stdin:\n"
ADMITTED = '{"ok": {"containers": self.shown(held)}}'


def saying(text: str) -> tuple[str, str]:
    """Writes each response by an expression of its own."""
    return PRINTED, text


# What is broken, by which replacements, and a piece of the sentence that names it.
BROKEN = {
    "text instead of JSON": (saying('print("done", flush=True)'), "the line is not JSON"),
    "a Python dictionary": (saying(f"print({BODY}, flush=True)"), "but a Python dictionary"),
    "JSON over several lines": (
        saying(f"print(json.dumps({BODY}, indent=1), flush=True)"),
        "it ends after its first bracket",
    ),
    "a list": (saying(f"print(json.dumps([{BODY}]), flush=True)"), "the line is not a JSON object"),
    "an empty line first": (
        saying(f"print()\n        {PRINTED}"),
        "there is output before the answer",
    ),
    "a header": (
        saying(f'print("Content-Length: 3")\n        {PRINTED}'),
        "output before the answer: a line 'Content-Length: 3'",
    ),
    "no UTF-8": (
        saying(r'sys.stdout.buffer.write(b"\xff\n"); sys.stdout.flush()'),
        "the line is not UTF-8: byte 1 (0xff)",
    ),
    "a byte order mark": (
        saying(f'print("\\ufeff" + json.dumps({BODY}), flush=True)'),
        "the line begins with a byte order mark",
    ),
    "NaN": (
        ('"memory": []}}', '"memory": [{"numa": [0], "type": "memory", "size": math.nan}]}}'),
        "NaN",
    ),
    "no id": (saying("print(json.dumps(answer), flush=True)"), "`id` is missing"),
    "an id that is text": (
        saying('print(json.dumps({"id": str(request["id"]), **answer}), flush=True)'),
        '`id` is "1"; it must be an integer',
    ),
    "the id of another request": (
        saying('print(json.dumps({"id": request["id"] + 7, **answer}), flush=True)'),
        "`id` is 8: that is the answer to another request",
    ),
    "JSON-RPC": (
        saying('print(json.dumps({"id": request["id"], "result": answer["ok"]}), flush=True)'),
        "`result` is not a field of a response",
    ),
    "ok and refused at once": (
        ('{"refused": {"stage"', '{"ok": {}, "refused": {"stage"'),
        "the response has `ok` and `refused`",
    ),
    "none of the four kinds": (
        saying('print(json.dumps({"id": request["id"]}), flush=True)'),
        "the response has none of the four kinds",
    ),
    "a field too many": (
        (STARTED, STARTED.replace("[]", '[], "numa": 1')),
        "`numa` is not a field",
    ),
    "a missing field": ((STARTED, '{"ok": {"cpus": cpus}}'), "`memory` is missing"),
    "CPUs as a list": (
        ('return ",".join(map(str, sorted(cpus)))', "return sorted(cpus)"),
        "`cpus.all` is a list ([0, 1, 2, 3, 4, 5, 6, 7]); it must be a CPU set",
    ),
    "CPUs with dots": (
        ('return ",".join(map(str, sorted(cpus)))', 'return "0..7"'),
        '`cpus.all` is "0..7", not in the Linux list format',
    ),
    "a number as text": (
        ('"memory": []}}', '"memory": [{"numa": [0], "type": "memory", "size": "5Gi"}]}}'),
        '`memory[0].size` is a string ("5Gi"); it must be an integer',
    ),
    "NUMA nodes out of order": (
        ('"numa": None', '"numa": [1, 0]'),
        "is not sorted or repeats an id",
    ),
    "a stage that does not exist": (('"stage": "cpu"', '"stage": "cpus"'), '`stage` is "cpus"'),
    "an operation that can't be refused": (
        ('return {"ok": {}}', 'return {"refused": {"reason": "no", "message": "no"}}'),
        "`remove` can't be refused",
    ),
    "a banner": (
        (LOOP, f'    print("driver 0.1 ready", flush=True)\n{LOOP}'),
        "output before the answer: a line 'driver 0.1 ready'",
    ),
    "a log line on standard output": (
        saying(f'{PRINTED}\n        print("served", flush=True)'),
        "there is output after the answer: a line 'served'",
    ),
    "two answers": (saying(f"{PRINTED}\n        {PRINTED}"), "request 1 is answered twice"),
    "carriage returns": (
        saying(f'print(json.dumps({BODY}), end="\\r\\n", flush=True)'),
        "a carriage return and a line feed",
    ),
    "a crash": (
        ('return {"ok": {}}', "sys.exit(3)"),
        "the program ended with exit code 3 instead of an answer",
    ),
    "an exception": (('return {"ok": {}}', 'raise KeyError("boom")'), "ended with exit code 1"),
    "a signal": (
        ('return {"ok": {}}', "import os; os.kill(os.getpid(), 11)"),
        "ended with signal SIGSEGV",
    ),
    "standard output closed": (
        ('return {"ok": {}}', "import os, time; os.close(1); time.sleep(60)"),
        "the program closed its standard output",
    ),
    "a failing exit": (
        (
            'if __name__ == "__main__":\n    main()',
            'if __name__ == "__main__":\n    main()\n    sys.exit(4)',
        ),
        "the program ended with exit code 4 at the end of its input",
    ),
    "no exit": (
        (
            'if __name__ == "__main__":\n    main()',
            'if __name__ == "__main__":\n    main()\n    import time; time.sleep(60)',
        ),
        "did not exit within a second of the end of its input",
    ),
    "a file in the working directory": (
        ('Path(args["state_dir"], "driver.json")', 'Path("driver.json")'),
        "the program left files in the working directory: driver.json",
    ),
    "a temporary file": (
        (
            "    driver = Driver()\n",
            "    driver = Driver()\n    import tempfile; tempfile.mkdtemp()\n",
        ),
        "the program left files in TMPDIR: tmp",
    ),
    "a process left behind": (
        (
            MADE,
            f"{MADE}    import subprocess as s\n    s.Popen(['sleep', '60'], process_group=0)\n",
        ),
        "the program left processes behind: sleep 60",
    ),
    "a process of its group left behind": (
        (
            MADE,
            f"{MADE}    import subprocess as s\n    s.Popen(['sleep', '61'], stdout=s.DEVNULL)\n",
        ),
        "the program left processes behind: sleep 61",
    ),
    "an unknown operation": (
        ('"remove", "state"]', '"remove", "sate"]'),
        "unknown operation 'sate'",
    ),
    "an unknown policy": (
        ('["none", "static"]', '["none", "statik"]'),
        "unknown CPU Manager policy 'statik'",
    ),
    "an unknown level": (('"invariants"', '"placements"'), '`level` is "placements"'),
    "an unknown release": (('["1.36"]', '["v1"]'), "names no release that numaproof knows"),
    "another protocol": (('"protocol": 1', '"protocol": 2'), "the harness speaks 1"),
    "nothing claimed": (
        ('["start", "admit", "remove", "state"]', "[]"),
        "`operations` names nothing to ask for",
    ),
    "operations without a start": (
        ('["start", "admit", "remove", "state"]', '["admit", "state"]'),
        "`admit`, `state` can't be asked for without `start`",
    ),
    "no state": (
        ('["start", "admit", "remove", "state"]', '["start", "admit", "remove"]'),
        "without `state` most of what every implementation must keep is not checked",
    ),
    "a claim answered unsupported": (
        ('return {"ok": {}}', 'return {"unsupported": {"what": "removal"}}'),
        "`hello` claims this, and the answer to `remove` is `unsupported`",
    ),
    "a claim answered with a fault": (
        ('return {"ok": {"shared"', 'return {"fault": {"message": "not yet"}} or {"ok": {"shared"'),
        "the answer is a fault: not yet",
    ),
    "a hello that is a fault": (
        ('answer = {"ok": HELLO}', 'answer = {"fault": {"message": "no"}}'),
        "`hello` ended in a fault: no",
    ),
    "a refusal of what fits": (
        ("if count > len(free):", "if count > 1:"),
        "this must not be refused: CPUs requested: 2",
    ),
    "an admission of what does not fit": (
        ("if count > len(free):", "if False:"),
        "this must be refused",
    ),
    "a start without reservation": (
        ("if self.static and (not reserved or not", "if self.static and (not"),
        "this start must be refused",
    ),
    "a container forgotten": ((ADMITTED, '{"ok": {"containers": {}}}'), "`containers` lacks `app`"),
    "reserved CPUs handed out": (
        ("free = self.allocatable & self.shared()", "free = self.shared()"),
        "[reserved-never-exclusive]",
    ),
    "a pod that the state does not list": (
        (
            'return {"ok": {"shared": listed(self.shared()), "pods": pods,',
            'return {"ok": {"shared": listed(self.shared()), "pods": {},',
        ),
        "the state lists none; on the node: ",
    ),
    "pods lost at a restart": (
        ('for uid, held in saved["pods"].items() if uid in there', "for uid, held in () if uid"),
        "[exclusive-set-stays]",
    ),
    "state kept in memory": (
        (
            "saved = json.loads(file.read_text()) if file.exists() else",
            'saved = {"pods": self.held, "node": node} if hasattr(self, "held") else',
        ),
        "the state lists none; on the node: uid-all, uid-log",
    ),
    "CPUs not free after a removal": (
        ('self.held.pop(args["uid"], None)', "pass"),
        "the state lists",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_named(what: str, examined: Examine) -> None:
    replacement, named = BROKEN[what]
    diagnosis = examined(replacement)
    found = [one.wrong for exchange in diagnosis.exchanges for one in exchange.findings]
    assert any(named in sentence for sentence in found), found


@pytest.mark.parametrize("child", ["sleep 0.4", "true"])
def test_processes_that_end_by_themselves_in_time_are_not_mentioned(
    child: str, examined: Examine
) -> None:
    ending = 'if __name__ == "__main__":\n    main()'
    started = f"import subprocess; subprocess.Popen({child.split()})"
    diagnosis = examined((ending, f"{ending}\n    {started}"))
    found = [one.wrong for exchange in diagnosis.exchanges for one in exchange.findings]
    assert not [sentence for sentence in found if "processes behind" in sentence]
