"""A file is taken for a kubelet of a release, or refused with what to do."""

from __future__ import annotations

import hashlib
import platform
import struct
import sys
from pathlib import Path

import pytest

from numaproof.kubelet import binary
from numaproof.kubelet.binary import BinaryError, identify


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kubelet"


def program(file: Path, content: str | bytes) -> Path:
    """Writes a program: a script for a shell, or bytes."""
    file.write_bytes(content if isinstance(content, bytes) else f"#!/bin/sh\n{content}\n".encode())
    file.chmod(0o755)
    return file


def refusal(file: Path) -> str:
    """The message of a refusal, without the path of the file before it."""
    with pytest.raises(BinaryError) as refused:
        identify(file)
    path, _, message = str(refused.value).partition(": ")
    assert path == str(file)
    return message


@pytest.mark.parametrize(
    ("shown", "version", "minor"),
    [
        ("v1.30.0", "1.30.0", (1, 30)),
        ("v1.37.1", "1.37.1", (1, 37)),
        ("v1.34.1+k3s1", "1.34.1+k3s1", (1, 34)),
        ("v1.33.5-eks-113cf36", "1.33.5-eks-113cf36", (1, 33)),
        ("v1.32.4-gke.1415000", "1.32.4-gke.1415000", (1, 32)),
        ("v1.36.0-alpha.2.33+0123abcd-dirty", "1.36.0-alpha.2.33+0123abcd-dirty", (1, 36)),
    ],
)
def test_versions_of_vendors_are_understood(
    file: Path, shown: str, version: str, minor: tuple[int, int]
) -> None:
    kubelet = identify(program(file, f"echo Kubernetes {shown}"))
    assert (kubelet.path, kubelet.version, kubelet.minor) == (file, version, minor)


def test_the_version_is_asked_for(file: Path) -> None:
    kubelet = identify(program(file, '[ "$*" = --version ] && echo Kubernetes v1.35.0'))
    assert kubelet.release == "1.35"


@pytest.mark.parametrize(("own", "nearest"), [("1.29", "1.30"), ("1.38", "1.37"), ("1.99", "1.37")])
def test_the_nearest_release_is_offered_for_an_unknown_one(
    file: Path, own: str, nearest: str
) -> None:
    program(file, f"echo Kubernetes v{own}.3")
    assert refusal(file) == (
        f"Kubernetes {own} is not supported (expected 1.30 to 1.37);"
        f" to check it as the nearest release, add --kubernetes {nearest}"
    )
    assert identify(file, nearest).release == nearest
    assert identify(file, nearest).version == f"{own}.3"


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ("echo kubectl 1.34; echo more", "'kubectl 1.34'"),
        ("echo Kubernetes 1.34.0", "'Kubernetes 1.34.0'"),
        ("echo Kubernetes v1.34.0 >&2", "''"),
        ("printf '\\377'", "'\ufffd'"),
        ("exit 3", "'' and ended with exit code 3"),
        ("kill -9 $$", "'' and ended with signal SIGKILL"),
        (f"echo {'x' * 100}", f"'{'x' * 60}'"),
    ],
)
def test_another_program_is_no_kubelet(file: Path, script: str, shown: str) -> None:
    message = refusal(program(file, script))
    assert message == (f"not a kubelet: --version printed {shown} (expected Kubernetes v1.N.P)")


def test_the_error_of_a_failed_program_is_shown(file: Path) -> None:
    missing = "libc.so.7: cannot open shared object file"
    message = refusal(program(file, f"echo '{missing}' >&2; exit 127"))
    assert message.endswith(f"exit code 127 (expected Kubernetes v1.N.P): {missing}")


RAW = 'version.Info{Major:"1", GitVersion:"v1.34.1", %s, GoVersion:"go1.26.8"}'


@pytest.mark.parametrize(
    ("fields", "known"),
    [
        ('GitCommit:"$Format:%%H$", GitTreeState:"", BuildDate:"1970-01-01T00:00:00Z"', {}),
        (
            'GitCommit:"85ce", GitTreeState:"clean", BuildDate:"2025-09-10T19:06:13Z"',
            {"commit": "85ce", "built": "2025-09-10T19:06:13Z"},
        ),
        ('GitCommit:"85ce", GitTreeState:"dirty"', {"commit": "85ce with changes"}),
    ],
)
def test_a_build_is_identified(file: Path, fields: str, known: dict[str, str]) -> None:
    shown = RAW.replace("%s", fields.replace("%%", "%"))
    program(file, f"[ $1 = --version ] && echo Kubernetes v1.34.1 || echo '{shown}'")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    found = binary.build(identify(file))
    assert found == {**known, "Go": "1.26.8", "SHA-256": digest}


def test_a_program_that_does_not_end_is_no_kubelet(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binary, "_TIMEOUT", 0.2)
    program(file, "exec tail -f /dev/null")
    assert refusal(file).startswith("not a kubelet: --version did not exit within")


def test_a_file_must_be_executable(file: Path) -> None:
    program(file, "").chmod(0o644)
    assert refusal(file) == f"not executable; run chmod +x {file}"


def test_a_missing_file_is_refused(file: Path) -> None:
    assert refusal(file) == "No such file or directory"


def elf(machine: int, order: str = "<") -> bytes:
    """The header of a program for a machine, without the program."""
    ident = b"\x7fELF" + bytes([2, 1 if order == "<" else 2, 1]) + bytes(9)
    return ident + struct.pack(f"{order}HH", 2, machine) + bytes(44)


HERE = platform.machine()
NUMBERS = {name: number for number, name in binary._MACHINES.items()}


@pytest.mark.parametrize(
    ("header", "built"),
    [
        (elf(NUMBERS["arm"]), "arm"),
        (elf(NUMBERS["aarch64" if HERE == "x86_64" else "x86_64"]), None),
        (elf(NUMBERS["s390x"], ">"), "s390x"),
        (elf(0x1234), "machine 4660"),
    ],
)
def test_a_program_for_another_architecture_is_named(
    file: Path, header: bytes, built: str | None
) -> None:
    built = built or ("aarch64" if HERE == "x86_64" else "x86_64")
    message = refusal(program(file, header))
    assert message == (f"built for {built}, but this machine is {HERE}; get the kubelet for {HERE}")


def test_a_broken_program_for_this_architecture_is_refused(file: Path) -> None:
    if HERE not in NUMBERS:
        pytest.skip(f"no number is known for {HERE}")
    assert refusal(program(file, elf(NUMBERS[HERE]))) == "Exec format error"


def test_a_script_without_its_interpreter_is_refused(file: Path) -> None:
    content = b"#!/no/such/shell -e\n"
    assert refusal(program(file, content)) == "its interpreter /no/such/shell -e is missing"


def test_a_program_without_its_loader_is_refused(file: Path) -> None:
    found = Path(sys.executable).read_bytes()
    loader = next(one for one in (b"/lib64/ld-linux", b"/lib/ld-linux") if one in found)
    program(file, found.replace(loader, loader[:-1] + b"_"))
    assert refusal(file).startswith("its dynamic loader is missing")


@pytest.mark.parametrize("content", [b"", b"MZ\x90\x00", b"\x7fEL", b"Kubernetes v1.34.0\n"])
def test_a_file_that_is_no_program_is_refused(file: Path, content: bytes) -> None:
    assert refusal(program(file, content)) == "not a kubelet: not a program for Linux"
