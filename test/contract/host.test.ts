import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { describe, expect, it } from "vitest";
import type { HostReadings } from "../../src/core/admission/host-reading.js";
import { findCgroups } from "../../src/host/cgroups.js";
import { createHostLoad, type HostLoad } from "../../src/host/host-load.js";
import { HostReader } from "../../src/host/host-reader.js";
import { bundledProgram } from "../support/bundled-program.js";
import type { ChildProgram } from "../support/child-program.js";
import { realClock, realRandom } from "../support/real-clock.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** Uses one CPU until the end, after everybody else. */
function burn(folders: readonly string[] = []): ChildProgram {
  return inCgroups(folders, "burner", ["-e", "os.setPriority(19); for (;;);"]);
}

/** Starts a Node that is in cgroups from its first instruction on. */
function inCgroups(
  folders: readonly string[],
  name: string,
  args: readonly string[],
): ChildProgram {
  const joins = folders.map((folder) => `echo $$ > '${folder}/cgroup.procs' && `).join("");
  const command = `${joins}exec "$0" "$@"`;
  const file = "sh";
  const program = stage.spawn({ name, file, args: ["-c", command, process.execPath, ...args] });
  // A cgroup can be removed once nobody is in it.
  stage.atEnd(() => program.kill());
  return program;
}

function openLoad(): HostLoad {
  const load = createHostLoad({ clock: realClock, everyMs: 200 });
  stage.atEnd(() => load.close());
  return load;
}

/**
 * Makes cgroups that may use a fifth of a CPU and 200 MB.
 *
 * @returns undefined where this machine lets nobody make some
 */
function makeCgroups(): readonly string[] | undefined {
  const own = findCgroups(
    readFileSync("/proc/self/cgroup", "utf8"),
    readFileSync("/proc/self/mountinfo", "utf8"),
  );
  const name = `headgate-test-${realRandom.id()}`;
  const made: string[] = [];
  const make = (parent: string | undefined, limits: Readonly<Record<string, string>>): void => {
    const folder = `${parent}/${name}`;
    if (made.includes(folder)) return;
    mkdirSync(folder);
    made.push(folder);
    stage.atEnd(() => waitFor("the cgroup is empty", () => rmdirSync(folder) === undefined));
    for (const [file, text] of Object.entries(limits)) writeFileSync(`${folder}/${file}`, text);
  };
  try {
    if (own.cpu === undefined) {
      const limits = { "cpu.max": "20000 100000", "memory.max": "200000000" };
      make(own.unified?.at(-1), limits);
    } else {
      make(own.cpu[0], { "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000" });
      make(own.cpuacct?.[0], {});
      make(own.memory?.[0], { "memory.limit_in_bytes": "200000000" });
    }
  } catch {
    return undefined;
  }
  return made;
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
    for (let i = 0; i <= availableParallelism(); i += 1) burn();
    await waitFor("nothing is left of the CPU", () => Number(load.cpuRatio) >= 0.95);
    await waitFor("more wants to run than can", () => Number(load.readings.runQueue) > 1);
    expect(load.loadRatio()).toBeGreaterThan(1);
  });

  it("knows how late the event loop is", async () => {
    const load = openLoad();
    await waitFor("it is late while somebody blocks it", () => {
      const untilMs = performance.now() + 150;
      while (performance.now() < untilMs);
      return Number(load.eventLoopDelayMs) >= 50;
    });
    await waitFor("it is in time again", () => Number(load.eventLoopDelayMs) < 20);
  });

  it("sees what its own cgroup may use, and that its limit throttles it", async ({ skip }) => {
    const folders = makeCgroups();
    if (folders === undefined) skip("this machine lets nobody make cgroups");
    const file = bundledProgram(new URL("host-program.ts", import.meta.url));
    const program = inCgroups(folders ?? [], "reader", [file]);
    await waitFor("it reads", () => readingsOf(program).length > 1);
    burn(folders);
    await waitFor("the limit is used up", () =>
      readingsOf(program).some(({ cpu = 0, cpuThrottling = 0 }) => {
        return cpu >= 0.9 && cpuThrottling >= 0.5;
      }),
    );
    // What the program itself takes, of 200 MB: more than of the machine's memory.
    expect(readingsOf(program).at(-1)?.memory).toBeGreaterThan(0.02);
  });
});
