"""Adapter for Slurm's CPU allocation: a private controller with one fake node.

A container is a job with one task. The node is a cloud node that never wakes up, so jobs are
allocated but never run, and cgroups aren't needed. The controller uses the state directory: after a
restart, it either restores its jobs or doesn't.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from ledger import Ledger

from protocol import Refusal, UnsupportedOperation, cpu_list, cpu_set, serve

HELLO = {
    "protocol": 1,
    "name": "slurm",
    "version": "22.05.8",
    "language": "C",
    "kubernetes": ["1.37"],
    "level": "invariants",
    "operations": ["start", "admit", "remove", "state"],
    "policies": {"cpu": ["static"]},
    "options": {},
    "features": ["container-removal", "restart"],
    "homepage": "https://slurm.schedmd.com/cpu_management.html",
}
_CONFIGURATION = """\
ClusterName=numaproof
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmctldPort={port}
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
StateSaveLocation={folder}
SlurmdSpoolDir={folder}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
ResumeProgram=/bin/true
SuspendProgram=/bin/true
SuspendTime=INFINITE
ResumeTimeout=60000
PrivateData=cloud
NodeName=node NodeAddr=127.0.0.1 Sockets={sockets} CoresPerSocket={cores} ThreadsPerCore=1 \
CpuSpecList={reserved} State=CLOUD
PartitionName=all Nodes=node Default=YES MaxTime=INFINITE State=UP
"""
_POLLS = 2000
_PAUSE = 0.01


class Controller:
    """A `slurmctld` for one machine, with each hardware thread declared as a core."""

    def __init__(self) -> None:
        self._jobs: dict[str, set[int]] = {}
        self._environment: dict[str, str] = {}

    def start(
        self, machine: dict[str, Any], allocatable: set[int], held_cpus: list[set[int]], at: Path
    ) -> None:
        self.stop()
        self._cpus = _by_socket(machine)
        folder = at / "slurm"
        fresh = not folder.exists()
        folder.mkdir(exist_ok=True)
        sockets = len({socket for socket, _ in self._cpus})
        reserved = {n for n, (_, cpu) in enumerate(self._cpus) if cpu not in allocatable}
        configuration = folder / "slurm.conf"
        configuration.write_text(
            _CONFIGURATION.format(
                host=socket.gethostname(),
                user=os.environ.get("USER", "root"),
                port=_free_port(),
                folder=folder,
                sockets=sockets,
                cores=len(self._cpus) // sockets,
                reserved=cpu_list(reserved),
            )
        )
        self._environment = {**os.environ, "SLURM_CONF": str(configuration)}
        arguments = ["-c"] if fresh else ["-R"]
        self._process = subprocess.Popen(  # noqa: S603 - Debian's
            ["slurmctld", "-D", *arguments],  # noqa: S607
            env=self._environment,
            stderr=subprocess.DEVNULL,
        )
        self._until(lambda: "UP" in self._run("scontrol", "ping", check=False))
        found = self._allocated() if not fresh else {}
        self._jobs = {job: cpus for job, cpus in found.items() if cpus in held_cpus}
        for job in found.keys() - self._jobs.keys():
            self._run("scancel", job)  # pods that ended while the controller was down
        if lost := [cpu_list(cpus) for cpus in held_cpus if cpus not in self._jobs.values()]:
            raise RuntimeError(f"Slurm lost the jobs on CPUs {lost}")

    def take(self, count: int) -> set[int]:
        line = ["salloc", "--no-shell", "--immediate=1", "-n1", f"-c{count}"]
        with subprocess.Popen(  # noqa: S603
            line, env=self._environment, stderr=subprocess.PIPE, text=True
        ) as asking:
            assert asking.stderr
            said = ""
            while line := asking.stderr.readline():
                said += line
                if granted := re.search(r"Granted job allocation (\d+)", line):
                    asking.kill()  # salloc would wait for the node to wake up; the job stays
                    self._jobs[granted[1]] = self._allocated()[granted[1]]
                    return self._jobs[granted[1]]
        raise Refusal(said.strip())

    def give_back(self, cpus: set[int]) -> None:
        job = next(job for job, own in self._jobs.items() if own == cpus)
        del self._jobs[job]
        self._run("scancel", job)
        self._until(lambda: job not in self._allocated())

    def stop(self, *, at_once: bool = False) -> None:
        """Stops the controller after it has saved its jobs, without waiting for its node.

        `at_once` also skips the wait of up to a second until the controller notices.
        """
        if not self._environment:
            return
        jobs = Path(self._environment.pop("SLURM_CONF")).with_name("job_state")
        before = _version(jobs)
        self._process.terminate()
        try:
            if not at_once:
                self._until(lambda: _version(jobs) != before or self._process.poll() is not None)
        finally:
            self._environment = {}
            self._process.kill()
            self._process.wait()

    def _allocated(self) -> dict[str, set[int]]:
        """Returns the CPUs of each job that has any, by job number."""
        shown = re.findall(
            r"JobId=(\d+) .*JobState=(?:CONFIGURING|RUNNING) .* CPU_IDs=(\S+)",
            self._run("scontrol", "show", "job", "-d", "-o"),
        )
        return {job: {self._cpus[one][1] for one in cpu_set(ids)} for job, ids in shown}

    def _run(self, *line: str, check: bool = True) -> str:
        return subprocess.run(  # noqa: S603
            line, env=self._environment, capture_output=True, text=True, check=check
        ).stdout

    def _until(self, true: Any) -> None:
        for _ in range(_POLLS):
            if true():
                return
            time.sleep(_PAUSE)
        raise RuntimeError("Slurm's controller did not respond within 20 seconds")


def _version(file: Path) -> tuple[int, int] | None:
    """Returns a value that changes when a file is rewritten."""
    found = file.stat() if file.exists() else None
    return found and (found.st_ino, found.st_mtime_ns)


def _by_socket(machine: dict[str, Any]) -> list[tuple[int, int]]:
    """Returns the socket and number of each CPU, in Slurm's order."""
    cores = [core for node in machine["topology"] for core in node["cores"] or []]
    ordered = sorted((core["socket_id"], sorted(core["thread_ids"])) for core in cores)
    cpus = [(socket, cpu) for socket, threads in ordered for cpu in threads]
    sizes = {sum(socket == one for one, _ in cpus) for socket, _ in cpus}
    if len(sizes) > 1:
        raise UnsupportedOperation("sockets with different numbers of CPUs")
    return cpus


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    controller = Controller()
    try:
        serve(HELLO, Ledger(controller).handlers())
    finally:
        controller.stop(at_once=True)
