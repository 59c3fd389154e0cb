import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { burnCpu, makeCgroup, mountCgroup } from "../support/cgroup.js";
import { containerTree, cpuStatText, writeHostTree } from "../support/host-trees.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: sidecar}
spec:
  services:
    - {name: by-cpu, concurrency: {law: signal, signal: {host: cpu, every: 100ms}}}
    - {name: by-memory, concurrency: {law: signal, signal: {host: memory, every: 100ms}}}
    - {name: by-queue, concurrency: {law: signal, signal: {host: runQueue, whenMissing: min}}}
    - {name: shedding, admission: {load: {host: {memory: 0.9}}}}
`;

/** A Headgate that sees a host below a folder of the test's. */
function startSidecar(root: string): Promise<HostedHeadgate> {
  const env = { HEADGATE_HOST_ROOT: root, BACKEND_TYPE: "memory", HEADGATE_DRAIN_DELAY_MS: "0" };
  return HostedHeadgate.start(stage, { policy, env });
}

async function waitForLimit(headgate: HostedHeadgate, service: string, max: number) {
  await waitFor(`${service} has ${max}`, async () => {
    return (await headgate.metric("headgate_admission_inflight_max", { service })) === max;
  });
}

describe("headgate serve, as a sidecar", () => {
  it("follows the memory, the CPU and the run queue of its container", async () => {
    const root = join(stage.folder, "host");
    mkdirSync(root);
    const headgate = await startSidecar(writeHostTree(root, containerTree));
    await waitForLimit(headgate, "by-cpu", 1_000);
    await waitForLimit(headgate, "by-memory", 1_000);
    // Page cache that goes does not make memory full; what nobody can take back does.
    writeHostTree(root, {
      "sys/fs/cgroup/memory.current": "469762048\n",
      "sys/fs/cgroup/memory.stat": "anon 469762048\ninactive_file 0\nactive_file 0\n",
    });
    await waitForLimit(headgate, "by-memory", 505);
    const load = { service: "shedding", signal: "host" };
    expect(await headgate.metric("headgate_admission_load_ratio", load)).toBeCloseTo(0.75);
    let usedUs = 60_000_000;
    await waitFor("the CPU is used up", async () => {
      usedUs += 60_000_000;
      writeHostTree(root, { "sys/fs/cgroup/cpu.stat": cpuStatText(usedUs, 400, 40) });
      const service = "by-cpu";
      return (await headgate.metric("headgate_admission_inflight_max", { service })) === 10;
    });
    // Then nobody uses any.
    await waitForLimit(headgate, "by-cpu", 1_000);
    // Six run or wait, for four CPUs.
    await waitForLimit(headgate, "by-queue", 753);
  });

  it("admits less while its neighbors burn the CPU, and more when they end", async ({ skip }) => {
    const cgroup = makeCgroup(stage);
    if (cgroup === undefined) return skip("this machine lets nobody make cgroups");
    const root = join(stage.folder, "host");
    mkdirSync(root);
    const headgate = await startSidecar(mountCgroup(root, cgroup));
    await waitForLimit(headgate, "by-cpu", 1_000);
    const burner = burnCpu(stage, cgroup);
    await waitForLimit(headgate, "by-cpu", 10);
    const line = '"event":"capacityDecreased"';
    await waitFor("the log has it", () => headgate.output.includes(line));
    await burner.kill();
    await waitForLimit(headgate, "by-cpu", 1_000);
    // A cgroup has no run queue: that is said once, and the bound for it holds.
    expect(headgate.output).toContain('"code":"SIGNAL_EMPTY"');
    await waitForLimit(headgate, "by-queue", 10);
    expect(await headgate.terminate()).toBe(true);
  });
});
