"""Compares fakesys with kernels: ``tox run -e kernels -- --folder kernels``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernels import comparison, guests

_GET = """
To get what is missing (on Debian 12):

    apt-get install qemu-system-x86 qemu-system-arm
    mkdir -p {folder} && cd {folder}
    for other in arm64 armhf i386; do dpkg --add-architecture $other; done; apt-get update
    apt-get download linux-image-VERSION-amd64 linux-image-VERSION-arm64:arm64 \\
        linux-image-VERSION-686-pae:i386 linux-image-VERSION-armmp-lpae:armhf \\
        busybox-static:amd64 busybox-static:arm64 busybox-static:i386 busybox-static:armhf
    for package in *.deb; do dpkg-deb -x $package $(dpkg-deb -f $package Architecture); done

`apt-cache depends linux-image-amd64 linux-image-6.12-amd64` shows the VERSIONs.
"""


def main() -> int:
    """Compares the requested shapes; returns 1 if anything is unexplained, 2 if it cannot boot."""
    parser = argparse.ArgumentParser(prog="tox run -e kernels --", description=__doc__)
    parser.add_argument("shape", nargs="*", help="only shapes whose names contain this")
    parser.add_argument("--folder", type=Path, required=True, help="kernels and results")
    parser.add_argument("--jobs", type=int, default=2, help="guests at a time (2)")
    args = parser.parse_args()
    wanted = [
        shape for shape in guests.shapes() if any(part in shape.name for part in args.shape or [""])
    ]
    with ThreadPoolExecutor(args.jobs) as pool:
        boots = [pool.submit(guests.archive_of, shape, args.folder) for shape in wanted]
    exempt = comparison.exemptions()
    problems: dict[str, str] = {}
    total = Counter(dict.fromkeys(comparison.Comparison.__struct_fields__, 0))
    print(f"{'shape':<32}{'files':>6}{'equal':>7}{'differ':>7}{'absent':>7}{'wrong':>6}")
    for shape, boot in zip(wanted, boots, strict=True):
        try:
            archive = boot.result()
            ours = comparison.rebuild(archive)
        except guests.MissingError as error:
            print(f"{error}\n{_GET.format(folder=args.folder.resolve())}", file=sys.stderr)
            return 2
        except (guests.BootError, comparison.LiteralError) as error:
            problems[shape.name] = str(error)
            continue
        found = comparison.compare(comparison.read_entries(archive), ours, exempt)
        problems |= {f"{shape.name}: {path}": what for path, what in found.unexplained.items()}
        counts = {name: len(getattr(found, name)) for name in found.__struct_fields__}
        total.update(counts)
        print(_row(shape.name, counts))
    print(_row("total", total))
    for where, problem in problems.items():
        print(f"{where}: {problem}")
    return bool(problems)


def _row(name: str, counts: dict[str, int] | Counter[str]) -> str:
    equal, different, absent, wrong = counts.values()
    files = sum(counts.values())
    return f"{name:<32}{files:>6}{equal:>7}{different:>7}{absent:>7}{wrong:>6}"


if __name__ == "__main__":
    sys.exit(main())
