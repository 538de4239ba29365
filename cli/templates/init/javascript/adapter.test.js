// Run with `node --test`; numaproof must be installed (requirements-conformance.txt).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { chooseCpus } from "./adapter.js";

const cores = [0, 1, 2, 3].map((one) => ({ core_id: one, socket_id: 0, thread_ids: [one, one + 4] }));
const machine = { topology: [{ node_id: 0, cores }] };

test("chooseCpus returns the requested number of free CPUs", () => {
  const free = [1, 3, 5, 7];
  const chosen = chooseCpus(2, free, machine);
  assert.equal(new Set(chosen).size, 2);
  assert.ok(chosen.every((cpu) => free.includes(cpu)));
});

test("the adapter speaks the protocol", () => {
  execFileSync("numaproof", ["doctor", "{{ skeleton.command }}"], { stdio: "inherit" });
});
