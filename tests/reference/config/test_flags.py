"""The kubelet's command line. The expected answers come from the kubelet of 1.37."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from numaproof.reference.config import flags
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.errors import UnsupportedError

ROWS = yaml.safe_load(Path(__file__).with_name("flags.yaml").read_bytes())


@pytest.mark.parametrize(
    "row", [*ROWS["set"], *ROWS["refused"]], ids=lambda row: " ".join(row["flags"])
)
def test_flags_set_fields_or_are_refused(row: dict[str, Any]) -> None:
    try:
        found = {"fields": json.loads(json.dumps(flags.read(row["flags"], "1.37")))}
    except ConfigError as refusal:
        found = {"says": str(refusal)}
    assert {"flags": row["flags"], **found} == row


@pytest.mark.parametrize("flag", ["--node-ip=1.2.3.4", "-v", "--v=4", "-h"])
def test_flags_outside_the_managers_are_unsupported(flag: str) -> None:
    with pytest.raises(UnsupportedError, match="flag -"):
        flags.read([flag], "1.37")


@pytest.mark.parametrize(
    ("flag", "last"), [("iptables-drop-bit", "1.30"), ("cloud-config", "1.33")]
)
def test_a_flag_is_known_in_the_releases_that_have_it(flag: str, last: str) -> None:
    assert [name for name, known in flags.table().items() if flag in known][-1] == last
    assert "fail-cgroupv1" not in flags.table()["1.30"]
