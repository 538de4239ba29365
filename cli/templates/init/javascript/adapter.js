// Adapter for {{ name }}: fill in chooseCpus. When you implement more, claim it in HELLO.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const HELLO = {
  protocol: 1,
  name: "{{ name }}",
  version: "0.1.0",
  language: "JavaScript",
  kubernetes: ["{{ kubernetes }}"],
  level: "invariants",
  operations: ["start", "admit", "remove", "state"],
  policies: { cpu: ["none", "static"] },
  options: {},
  features: ["container-removal", "restart"],
};

// YOUR POLICY GOES HERE: chooses `count` of the `free` CPUs, which are sorted and always enough.
// `machine` is cAdvisor's MachineInfo. At level invariants, any choice is correct.
export function chooseCpus(count, free, machine) {
  return free.slice(0, count);
}

class Node {
  start({ machine, config, state_dir, pods = [] }) {
    this.file = this.held = undefined; // if the start is refused, all other calls are faults
    if (!machine) return { unsupported: { what: "discovery" } };
    const cores = (machine.topology ?? []).flatMap((node) => node.cores ?? []);
    const cpus = [...new Set(cores.flatMap((core) => core.thread_ids))].sort((a, b) => a - b);
    const policy = config.cpuManagerPolicy ?? "none";
    if (!HELLO.policies.cpu.includes(policy)) return refusedStart(`unknown policy ${policy}`);
    const fixed = policy === "static" ? reservedCpus(config, cpus) : [];
    if (policy === "static" && (!fixed.length || without(fixed, cpus).length)) {
      return refusedStart("static needs a valid reservation");
    }
    Object.assign(this, { machine, isStatic: policy === "static", held: new Map() });
    this.managed = this.isStatic ? cpus : []; // empty under the none policy
    this.allocatable = without(this.managed, fixed);
    const file = join(state_dir, "held.json");
    const saved = new Map(existsSync(file) && this.isStatic ? JSON.parse(readFileSync(file, "utf8")) : []);
    for (const { metadata, spec } of pods) { // running pods, which are admitted again later
      const held = new Map(saved.get(metadata.uid));
      this.held.set(metadata.uid, new Map(spec.containers.map(({ name }) => [name, held.get(name) ?? []])));
    }
    if (without(this.exclusive(), this.allocatable).length) {
      this.held = undefined;
      return refusedStart("a pod's CPUs are not allocatable");
    }
    this.file = file;
    return { ok: { cpus: { all: listed(cpus), allocatable: listed(this.allocatable) }, memory: [] } };
  }

  admit({ pod: { metadata, spec, status } }) {
    if (spec.initContainers?.length || spec.resources) {
      return { unsupported: { what: "init containers and pod-level resources" } };
    }
    const held = this.held.get(metadata.uid) ?? new Map();
    this.held.set(metadata.uid, held);
    for (const container of spec.containers) {
      if (held.get(container.name)?.length) continue; // admitted before: the container keeps its CPUs
      const free = without(this.allocatable, this.exclusive());
      const count = this.isStatic ? exclusiveCount(spec.containers, container, status) : 0;
      if (count > free.length) {
        this.held.delete(metadata.uid);
        return { refused: { reason: "UnexpectedAdmissionError", message: `${count} CPUs, ${free.length} free` } };
      }
      held.set(container.name, chooseCpus(count, free, this.machine));
    }
    return { ok: { containers: this.shown(held) } };
  }

  remove({ uid, container }) {
    if (container) this.held.get(uid).set(container, []);
    else this.held.delete(uid);
    return { ok: {} };
  }

  state() {
    const pods = Object.fromEntries([...this.held].map(([uid, held]) => [uid, this.shown(held)]));
    return { ok: { shared: listed(without(this.managed, this.exclusive())), pods } };
  }

  exclusive = () => [...this.held.values()].flatMap((held) => [...held.values()].flat());

  shown(held) {
    const shared = listed(without(this.managed, this.exclusive()));
    const rest = { memory: [], affinity: { numa: null, preferred: false } };
    const entry = (own) => ({ cpus: listed(own) || shared, exclusive: listed(own), ...rest });
    return Object.fromEntries([...held].map(([name, own]) => [name, entry(own)]));
  }

  save() {
    if (this.file) writeFileSync(this.file, JSON.stringify([...this.held].map(([uid, own]) => [uid, [...own]])));
  }
}

const refusedStart = (message) => ({ refused: { stage: "cpu", message } });
const without = (cpus, others) => cpus.filter((cpu) => !others.includes(cpu));
const listed = (cpus) => [...cpus].sort((a, b) => a - b).join(",");

// The CPUs reserved for the system: those in reservedSystemCPUs, or the lowest ones.
function reservedCpus(config, cpus) {
  if (config.reservedSystemCPUs) {
    return config.reservedSystemCPUs.split(",").flatMap((part) => {
      const [first, last = first] = part.split("-").map(Number);
      return Array.from({ length: last - first + 1 }, (_, index) => first + index);
    });
  }
  const thousandths = (amounts) => Math.round(quantity(amounts?.cpu ?? 0) * 1000);
  const count = Math.ceil((thousandths(config.kubeReserved) + thousandths(config.systemReserved)) / 1000);
  return count <= cpus.length ? cpus.slice(0, count) : [];
}

// How many exclusive CPUs a container gets: only whole CPUs, only in Guaranteed pods.
function exclusiveCount(containers, container, status) {
  const limit = ({ resources }, name) => quantity(resources?.limits?.[name] ?? 0);
  const request = (one, name) => quantity(one.resources?.requests?.[name] ?? limit(one, name));
  const equal = (one, name) => limit(one, name) && request(one, name) === limit(one, name);
  const follows = containers.every((one) => equal(one, "cpu") && equal(one, "memory"));
  const guaranteed = status?.qosClass ? status.qosClass === "Guaranteed" : follows;
  const cpus = request(container, "cpu");
  return guaranteed && Number.isInteger(cpus) ? cpus : 0;
}

// Parses an amount such as 1500m, 2Gi or 1e3.
function quantity(text) {
  const [, number, letter, binary] = /^(.*?)([numkKMGTPE]?)(i?)$/.exec(text);
  const power = letter ? "num kMGTPE".indexOf(letter.replace("K", "k")) - 3 : 0;
  const value = binary ? Number(number) * 1024 ** power : Number(letter ? `${number}e${3 * power}` : number);
  if (Number.isNaN(value)) throw new Error(`${text} is not a quantity`);
  return value;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const node = new Node();
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, op, args } = JSON.parse(line);
    let answer = { unsupported: { what: `operation ${op}` } };
    try {
      if (op === "hello") answer = { ok: HELLO };
      else if (HELLO.operations.includes(op)) answer = node[op](args);
      node.save();
    } catch (error) {
      answer = { fault: { message: String(error), trace: error.stack } };
    }
    process.stdout.write(`${JSON.stringify({ id, ...answer })}\n`);
  }
}
