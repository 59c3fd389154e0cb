import { describe, expect, it } from "vitest";
import { type HostLoadOptions, openHostLoad } from "../../../src/host/host-load.js";
import { FakeClock } from "../../support/fake-clock.js";
import {
  containerTree,
  cpuStatText,
  pressureText,
  writeHostTree,
} from "../../support/host-trees.js";
import { useStage } from "../../support/stage.js";

const stage = useStage("test");

/** A container that a test changes, read each second. */
function start(options: Partial<HostLoadOptions> = {}) {
  const clock = new FakeClock();
  const root = writeHostTree(stage.folder, containerTree);
  let delayMs: number | undefined = 12;
  let isClosed = false;
  const load = openHostLoad({
    clock,
    root,
    eventLoop: {
      takeMs: () => delayMs,
      close: () => {
        isClosed = true;
      },
    },
    ...options,
  });
  return {
    clock,
    load,
    root,
    delay: (ms: number | undefined) => {
      delayMs = ms;
    },
    isClosed: () => isClosed,
  };
}

/** CPU time that is half of 1.5 CPUs for so long, besides what was used before. */
const halfUsed = (ms: number): string => cpuStatText(60_000_000 + 750 * ms);

describe("openHostLoad()", () => {
  it("knows memory at once, and rates after a tenth of a second", () => {
    const { clock, load, root } = start();
    expect(load.readings).toEqual({ memory: 0.25 });
    expect(load.cpuRatio).toBeUndefined();
    expect(load.loadRatio()).toBe(0);
    writeHostTree(root, {
      "sys/fs/cgroup/cpu.stat": halfUsed(100),
      "sys/fs/cgroup/cpu.pressure": pressureText(550_000, 0),
    });
    clock.advance(100);
    expect(load).toMatchObject({
      cpuRatio: 0.5,
      memoryRatio: 0.25,
      pressure: { cpuRatio: 0.5, memoryRatio: 0, memoryStallRatio: 0 },
      eventLoopDelayMs: 12,
    });
    expect(load.readings.runQueue).toBe(1.5);
    expect(load.loadRatio()).toBeCloseTo(0.5 / 0.9);
  });

  it("looks at what passed since the last reading", () => {
    const { clock, load, root } = start();
    clock.advance(100);
    expect(load.cpuRatio).toBe(0);
    writeHostTree(root, { "sys/fs/cgroup/cpu.stat": halfUsed(1_000) });
    clock.advance(999);
    expect(load.cpuRatio).toBe(0);
    clock.advance(1);
    expect(load.cpuRatio).toBe(0.5);
    clock.advance(1_000);
    expect(load.cpuRatio).toBe(0);
  });

  it("is as full as what is fullest, of what it is told to look at", () => {
    const { clock, load, root, delay } = start({
      full: { cpu: 0.5, memory: 0.3, eventLoopDelay: 100 },
    });
    delay(40);
    clock.advance(100);
    // Memory counts from a tenth below where it is full: 0.25 of 0.3 is half of the way.
    expect(load.loadRatio()).toBeCloseTo(0.5);
    delay(80);
    clock.advance(1_000);
    expect(load.loadRatio()).toBeCloseTo(0.8);
    delay(undefined);
    writeHostTree(root, { "sys/fs/cgroup/cpu.stat": halfUsed(1_000) });
    clock.advance(1_000);
    expect(load.loadRatio()).toBe(1);
  });

  it("averages the run queue over seconds", () => {
    const { clock, load, root } = start();
    clock.advance(100);
    writeHostTree(root, { "proc/loadavg": "0.52 0.58 0.59 41/467 11203\n" });
    clock.advance(1_000);
    expect(load.readings.runQueue).toBeGreaterThan(1.5);
    expect(load.readings.runQueue).toBeLessThan(10);
    clock.advance(60_000);
    expect(load.readings.runQueue).toBeCloseTo(10, 1);
  });

  it("leaves nothing behind", () => {
    const { clock, load, isClosed } = start();
    clock.advance(5_000);
    load.close();
    expect(clock.timerCount).toBe(0);
    expect(isClosed()).toBe(true);
  });

  it("is no load where the host says nothing", () => {
    const { clock, load, delay } = start({ root: "/nowhere" });
    delay(undefined);
    clock.advance(2_000);
    expect(load.cpuRatio).toBeUndefined();
    expect(load.loadRatio()).toBe(0);
  });
});
