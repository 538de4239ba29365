"""A small CPU manager that speaks the conformance protocol, with a bug (see docs/fuzzing.md)."""

import json
import math
import sys
from fractions import Fraction
from pathlib import Path

SUFFIXES = {"u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
SUFFIXES |= {"k": 1000, "M": 10**6, "G": 10**9, "T": 10**12}
SUFFIXES |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}

HELLO = {
    "protocol": 1,
    "name": "small-driver",
    "version": "0.1",
    "language": "Python",
    "kubernetes": ["1.36"],
    "level": "invariants",
    "operations": ["start", "admit", "remove", "state"],
    "policies": {"cpu": ["none", "static"]},
    "options": {},
    "features": ["container-removal", "restart", "reconfiguration"],
}


def amount(text):
    """Parses a quantity such as 1500m or 2Gi."""
    text = str(text)
    for suffix, factor in SUFFIXES.items():
        if text.endswith(suffix):
            return Fraction(text.removesuffix(suffix)) * factor
    return Fraction(text)


def parse_cpus(text):
    """Parses a list of CPUs such as 0-3,8."""
    spans = [part.split("-") for part in text.split(",") if part]
    return {cpu for span in spans for cpu in range(int(span[0]), int(span[-1]) + 1)}


def format_cpus(cpus):
    """Formats CPUs in the Linux list format."""
    return ",".join(map(str, sorted(cpus)))


def exclusive_cpus(pod, container):
    """Returns how many exclusive CPUs a container gets: none unless its pod is Guaranteed."""
    for one in pod["spec"]["containers"]:
        resources = one.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name in ("cpu", "memory"):
            limit = amount(limits.get(name, 0))
            if not limit or amount(requests.get(name, limit)) != limit:
                return 0
    cpus = amount(container["resources"]["limits"]["cpu"])
    return int(cpus) if cpus.denominator == 1 else 0


class Driver:
    """A node: its CPUs, and the CPUs that each pod holds."""

    file = None

    def start(self, args):
        self.file = None
        config, machine = args["config"], args.get("machine")
        if machine is None:
            return {"unsupported": {"what": "discovery"}}
        nodes = machine["topology"] or []
        cores = [core for node in nodes for core in node["cores"] or []]
        self.all = {cpu for core in cores for cpu in core["thread_ids"]}
        self.static = config.get("cpuManagerPolicy", "none") == "static"
        reserved = parse_cpus(config.get("reservedSystemCPUs", ""))
        if self.static and not reserved:
            asked = [config.get(key) or {} for key in ("kubeReserved", "systemReserved")]
            count = math.ceil(sum(amount(one.get("cpu", 0)) for one in asked))
            reserved = set(sorted(self.all)[:count])
        if self.static and (not reserved or not reserved <= self.all):
            return {"refused": {"stage": "cpu", "message": "static must reserve some CPUs"}}
        self.allocatable = self.all - reserved if self.static else set()
        file = Path(args["state_dir"], "driver.json")
        node = [self.static, format_cpus(self.all), format_cpus(self.allocatable)]
        saved = json.loads(file.read_text()) if file.exists() else {"pods": {}}
        if saved["pods"] and saved["node"] != node:
            return {"refused": {"stage": "cpu", "message": "the node has changed"}}
        there = {pod["metadata"]["uid"] for pod in args.get("pods") or []}
        self.node, self.file = node, file
        self.allocations = {uid: held for uid, held in saved["pods"].items() if uid in there}
        cpus = {"all": format_cpus(self.all), "allocatable": format_cpus(self.allocatable)}
        return {"ok": {"cpus": cpus, "memory": []}}

    def admit(self, args):
        pod = args["pod"]
        if pod["spec"].get("initContainers") or pod["spec"].get("resources"):
            return {"unsupported": {"what": "init containers and pod-level resources"}}
        held = self.allocations.setdefault(pod["metadata"]["uid"], {})
        for container in pod["spec"]["containers"]:
            if container["name"] in held:
                continue
            count = exclusive_cpus(pod, container) if self.static else 0
            free = self.allocatable & self.shared()
            if count > len(free):
                message = f"CPUs requested: {count}, free: {len(free)}"
                return {"refused": {"reason": "UnexpectedAdmissionError", "message": message}}
            held[container["name"]] = sorted(free)[:count]
        return {"ok": {"containers": self.containers(held)}}

    def remove(self, args):
        if "container" in args:
            self.allocations[args["uid"]][args["container"]] = []
        else:
            self.allocations.pop(args["uid"], None)
        return {"ok": {}}

    def state(self, args):
        pods = {uid: self.containers(held) for uid, held in self.allocations.items()}
        return {"ok": {"shared": format_cpus(self.shared()), "pods": pods, "files": {}}}

    def shared(self):
        if not self.static:
            return set()
        pods = self.allocations.values()
        return self.all - {cpu for held in pods for own in held.values() for cpu in own}

    def containers(self, cpus_by_name):
        return {
            name: {
                "cpus": format_cpus(own or self.shared()),
                "exclusive": format_cpus(own),
                "memory": [],
                "affinity": {"numa": None, "preferred": False},
            }
            for name, own in cpus_by_name.items()
        }

    def save(self):
        if self.file:
            self.file.write_text(json.dumps({"node": self.node, "pods": self.allocations}))


def main():
    driver = Driver()
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "hello":
            answer = {"ok": HELLO}
        elif request["op"] in ("admit", "remove", "state") and not driver.file:
            answer = {"fault": {"message": "not started"}}
        else:
            answer = getattr(driver, request["op"])(request["args"])
            driver.save()
        print(json.dumps({"id": request["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
