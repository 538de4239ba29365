"""Shell scripts that stand in for kubelets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def kubelet_script(file: Path, script: str, version: str = "1.37.0") -> Path:
    """Writes a script that prints a kubelet's version, or otherwise runs the given commands."""
    told = f'case "$*" in --version*) echo "Kubernetes v{version}"; exit ;; esac'
    file.write_text(f"#!/bin/sh\n{told}\n{script}\n", encoding="utf-8")
    file.chmod(0o755)
    return file
