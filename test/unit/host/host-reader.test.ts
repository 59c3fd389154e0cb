import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { HostReader } from "../../../src/host/host-reader.js";
import {
  bareTree,
  containerTree,
  cpuStatText,
  firstVersionTree,
  type HostTree,
  nestedTree,
  pressureText,
  writeHostTree,
} from "../../support/host-trees.js";
import { useStage } from "../../support/stage.js";

const stage = useStage("test");

function readerOf(tree: HostTree): HostReader {
  return new HostReader(writeHostTree(stage.folder, tree));
}

const hostMemoryRatio = 0.25;

describe("HostReader", () => {
  it("reads a container by its own cgroup of the second version", () => {
    const reader = readerOf(containerTree);
    expect(reader.read()).toEqual({
      limitedCpu: [
        {
          folder: "/sys/fs/cgroup",
          cpusMax: 1.5,
          usedUs: 60_000_000,
          periodsCount: 400,
          throttledCount: 40,
        },
      ],
      ticks: { busyTicks: 1_000, totalTicks: 37_000, usableCount: 4, cpusCount: 4 },
      cpuPressure: { someUs: 500_000, fullUs: 400_000 },
      memoryRatio: (434_217_728 - 300_000_000) / 536_870_912,
      memoryPressure: { someUs: 20_000, fullUs: 10_000 },
      runnableCount: 6,
      cpusCount: 4,
    });
    expect(reader.throttling()).toEqual({ throttledCount: 40, throttledUs: 200_000 });
  });

  it("reads the cgroup around it that has the limits", () => {
    const { limitedCpu, cpuPressure, memoryRatio, memoryPressure } = readerOf(nestedTree).read();
    expect(limitedCpu).toMatchObject([{ cpusMax: 2, usedUs: 90_000_000, throttledCount: 10 }]);
    expect(cpuPressure?.someUs).toBe(600_000);
    expect(memoryRatio).toBe(736_870_912 / 1_073_741_824);
    expect(memoryPressure?.someUs).toBe(30_000);
  });

  it("goes by the fullest memory of several limits, and tells each CPU limit", () => {
    const scope = "kubepods.slice/kubepods-burstable-pod1.slice/cri-1.scope";
    const { limitedCpu, memoryRatio } = readerOf({
      ...nestedTree,
      [`sys/fs/cgroup/${scope}/cpu.max`]: "50000 100000\n",
      [`sys/fs/cgroup/${scope}/memory.max`]: "100000000\n",
      [`sys/fs/cgroup/${scope}/memory.current`]: "95000000\n",
      [`sys/fs/cgroup/${scope}/memory.stat`]: "inactive_file 0\nactive_file 5000000\n",
    }).read();
    expect(limitedCpu.map(({ cpusMax }) => cpusMax)).toEqual([0.5, 2]);
    expect(memoryRatio).toBe(0.9);
  });

  it("reads a container of the first version, whose path only the host explains", () => {
    const reader = readerOf(firstVersionTree);
    expect(reader.read()).toMatchObject({
      limitedCpu: [{ cpusMax: 0.5, usedUs: 12_000_000, periodsCount: 300, throttledCount: 30 }],
      cpuPressure: { someUs: 7_000_000 },
      memoryRatio: 0.5,
      memoryPressure: { someUs: 3_000_000, fullUs: 1_000_000 },
    });
    expect(reader.throttling()).toEqual({ throttledCount: 30, throttledUs: 1_500_000 });
  });

  it("reads the host where nothing limits the process", () => {
    expect(readerOf(bareTree).read()).toMatchObject({
      limitedCpu: [],
      ticks: { busyTicks: 1_000, totalTicks: 37_000 },
      cpuPressure: { someUs: 7_000_000 },
      memoryRatio: hostMemoryRatio,
    });
  });

  it("counts only the CPUs that the process may run on, and no limit above them", () => {
    const pinned = { ...containerTree, "proc/self/status": "Cpus_allowed_list:\t0\n" };
    const { limitedCpu, ticks } = readerOf(pinned).read();
    expect(limitedCpu).toEqual([]);
    expect(ticks).toEqual({ busyTicks: 1_000, totalTicks: 10_000, usableCount: 1, cpusCount: 4 });
  });

  it("follows a limit that changes while it runs, also to none", () => {
    const reader = readerOf(containerTree);
    const limits = (text: string): readonly number[] => {
      writeHostTree(stage.folder, { "sys/fs/cgroup/cpu.max": text });
      return reader.read().limitedCpu.map(({ cpusMax }) => cpusMax);
    };
    expect(limits("50000 100000\n")).toEqual([0.5]);
    expect(limits("max 100000\n")).toEqual([]);
    // A limit of all CPUs there are is none.
    expect(limits("400000 100000\n")).toEqual([]);
  });

  it("takes the mounted cgroup for the one that is meant without a /proc", () => {
    const reader = readerOf({
      "sys/fs/cgroup/cpu.max": "100000 100000\n",
      "sys/fs/cgroup/cpu.stat": cpuStatText(5_000, 9, 3),
      "sys/fs/cgroup/memory.pressure": pressureText(1, 2),
    });
    expect(reader.read()).toMatchObject({
      limitedCpu: [{ cpusMax: 1, usedUs: 5_000, throttledCount: 3 }],
      ticks: undefined,
      cpuPressure: undefined,
      memoryRatio: undefined,
      memoryPressure: { someUs: 1, fullUs: 2 },
      runnableCount: undefined,
    });
  });

  it("knows nothing where there is nothing, and of a folder that vanishes", () => {
    const empty = {
      limitedCpu: [],
      ticks: undefined,
      cpuPressure: undefined,
      memoryRatio: undefined,
      memoryPressure: undefined,
      runnableCount: undefined,
      cpusCount: undefined,
    };
    expect(new HostReader(join(stage.folder, "none")).read()).toEqual(empty);
    const reader = readerOf(containerTree);
    rmSync(stage.folder, { recursive: true });
    expect(reader.read()).toEqual(empty);
    expect(reader.throttling()).toBeUndefined();
  });

  it("reads no more of a huge file than its bound", () => {
    const huge = `${"x 1\n".repeat(100_000)}usage_usec 5\n`;
    const { limitedCpu } = readerOf({ ...containerTree, "sys/fs/cgroup/cpu.stat": huge }).read();
    expect(limitedCpu).toMatchObject([{ cpusMax: 1.5, usedUs: undefined }]);
  });
});
