import { availableParallelism } from "node:os";
import { describe, expect, it } from "vitest";
import type { HostReadings } from "../../src/core/admission/host-reading.js";
import { type HostLoad, openHostLoad } from "../../src/host/host-load.js";
import { HostReader } from "../../src/host/host-reader.js";
import { bundledProgram } from "../support/bundled-program.js";
import { burnCpu, makeCgroup, startInCgroup } from "../support/cgroup.js";
import type { ChildProgram } from "../support/child-program.js";
import { realClock } from "../support/real-clock.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

function openLoad(): HostLoad {
  const load = openHostLoad({ clock: realClock, everyMs: 200 });
  stage.atEnd(() => load.close());
  return load;
}

function readingsOf({ output }: ChildProgram): readonly HostReadings[] {
  const lines = output.slice(0, output.lastIndexOf("\n") + 1).split("\n");
  return lines.filter(Boolean).map((line): HostReadings => JSON.parse(line));
}

describe("the host that this runs on", () => {
  it("has what every Linux has", () => {
    const { memoryRatio, runnableCount, cpusCount, ticks } = new HostReader().read();
    expect(memoryRatio).toBeGreaterThan(0);
    expect(memoryRatio).toBeLessThan(1);
    expect(runnableCount).toBeGreaterThanOrEqual(0);
    expect(cpusCount).toBeGreaterThanOrEqual(availableParallelism());
    expect(ticks?.totalTicks).toBeGreaterThan(ticks?.busyTicks ?? Number.NaN);
  });

  it("is busy while all of its CPUs are, and its run queue is as long as what runs", async () => {
    const load = openLoad();
    for (let i = 0; i <= availableParallelism(); i += 1) burnCpu(stage);
    await waitFor("nothing is left of the CPU", () => Number(load.cpuRatio) >= 0.95);
    await waitFor("more wants to run than can", () => Number(load.readings.runQueue) > 1);
    expect(load.loadRatio()).toBeGreaterThan(1);
  });

  it("knows how late the event loop is", async () => {
    const load = openLoad();
    const blocked = () => {
      const untilMs = performance.now() + 150;
      while (performance.now() < untilMs);
      return Number(load.eventLoopDelayMs) >= 50;
    };
    await waitFor("it is late while somebody blocks it", blocked, { everyMs: 10 });
    await waitFor("it is in time again", () => Number(load.eventLoopDelayMs) < 20);
  });

  it("sees what its own cgroup may use, and that its limit throttles it", async ({ skip }) => {
    const cgroup = makeCgroup(stage);
    if (cgroup === undefined) skip("this machine lets nobody make cgroups");
    const file = bundledProgram(new URL("host-program.ts", import.meta.url));
    const program = startInCgroup(stage, cgroup, { name: "reader", args: [file] });
    await waitFor("it reads", () => readingsOf(program).length > 1);
    burnCpu(stage, cgroup);
    await waitFor("the limit is used up", () =>
      readingsOf(program).some(({ cpu = 0, cpuThrottling = 0 }) => {
        return cpu >= 0.9 && cpuThrottling >= 0.5;
      }),
    );
    // What the program itself takes, of 200 MB: more than of the machine's memory.
    expect(readingsOf(program).at(-1)?.memory).toBeGreaterThan(0.02);
  });
});
