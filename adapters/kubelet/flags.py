"""Updates the reference's table of kubelet flags from the output of built adapters.

``flags.py TABLE PROGRAM...`` runs each program and replaces or adds the column of its release. The
columns of other releases don't change.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import gates

TITLE = """\
# The flags of the kubelet's command line: one row per flag, one column per release. An x means that
# the release has the flag.
"""


def main(table: Path, programs: list[str]) -> None:
    """Replaces the columns of the programs' releases in the table."""
    text = table.read_text(encoding="ascii").split("\n\n")[1]
    columns = gates.columns([line.split() for line in text.splitlines()], 1)
    for program in programs:
        ended = subprocess.run(  # noqa: S603 - the user's own program
            [program, "-flags"], check=True, capture_output=True
        )
        answer = json.loads(ended.stdout)
        columns[answer["kubernetes"]] = {(name,): "x" for name in answer["flags"]}
    table.write_text("\n".join([TITLE, *gates.rows(("flag",), columns), ""]), encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
