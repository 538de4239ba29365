"""What `hello` claims is asked, and what a program does otherwise there is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.diagnosis import Diagnosis

    Examine = Callable[..., Diagnosis]

OPTION = ('"options": {}', '"options": {"cpu": ["full-pcpus-only"]}')
ALIVE = '        elif request["op"] in ("admit", "remove", "state") and not driver.file:\n'
HELD = 'self.held = {uid: held for uid, held in saved["pods"].items() if uid in there}'

ERASING = """\
            if request["op"] == "start" and driver.file:
                driver.file.write_text(EMPTY)
            elif request["op"] != "state":
                driver.save()
"""

UNTRUE = {
    "an option that is ignored": ([OPTION], "this must be refused"),
    "an option that gives half a core": ([OPTION], "[whole-cores-only]"),
    "an option that is refused": (
        [
            OPTION,
            (
                "if self.static and (not reserved or not",
                'if "cpuManagerPolicyOptions" in config or self.static and (not reserved or not',
            ),
        ],
        "this must not be refused: static must reserve some CPUs",
    ),
    "init containers": (
        [('"features": [', '"features": ["init-containers", ')],
        "`hello` claims this, and the answer to `admit` is `unsupported`",
    ),
    "the removal of a container": (
        [('self.held[args["uid"]][args["container"]] = []', 'del self.held[args["uid"]]')],
        "the state lists none; on the node: uid-pair",
    ),
    "policy none": (
        [("        if not self.static:\n", "        if False:\n")],
        "under CPU policy none `shared` is 0-7, and nothing is pinned",
    ),
    "pods that have left": (
        [(" if uid in there}", "}")],
        "the state lists uid-all, uid-db, uid-log; on the node: uid-all, uid-log",
    ),
    "a start that erases what is stored": (
        [
            (
                "            driver.save()\n",
                ERASING,
            )
        ],
        "the state lists none; on the node: uid-all, uid-log",
    ),
    "pods of an earlier node": (
        [(HELD, f'{HELD}; self.held |= getattr(self, "old", {{}}); self.old = self.held')],
        "on the node: none",
    ),
    "a file outside the state directory": (
        [('Path(args["state_dir"], "driver.json")', 'Path(os.environ["TMPDIR"], "driver.json")')],
        "the state directory was empty and no pod has been admitted since",
    ),
    "a node after a refused start": (
        [(ALIVE, '        elif request["op"] == "nothing":\n')],
        "the start before this was refused, and the answer is no `fault`",
    ),
}


@pytest.mark.parametrize("what", UNTRUE)
def test_what_is_untrue_is_named(what: str, examined: Examine) -> None:
    replacements, named = UNTRUE[what]
    diagnosis = examined(
        ("import json\n", "import json\nimport os\nEMPTY = '{\"pods\": {}}'\n"), *replacements
    )
    found = [one.wrong for exchange in diagnosis.exchanges for one in exchange.findings]
    assert any(named in sentence for sentence in found), found
