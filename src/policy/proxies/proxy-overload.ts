import type { Block } from "../text/block.js";
import { type DurationBounds, type NumberBounds, positiveRatioBounds } from "../text/quantities.js";
import { thresholdBounds } from "../upstream/circuit-breakers.js";
import type { CgroupOverload, CpuOverload, HeapOverload, OverloadPolicy } from "./proxy-policy.js";
import { cgroupOverloadShape, cpuOverloadShape, overloadShape } from "./proxy-shapes.js";

/** The least memory that an Envoy could run in. */
export const memoryBytesMin = 16 * 2 ** 20;

/** The most: more than any machine has. */
export const memoryBytesMax = 2 ** 44;

/** The bounds of `maxHeap` and of a control group's memory. */
const memoryBounds: NumberBounds = { min: memoryBytesMin, max: memoryBytesMax };

/** Envoy looks no more often, and less than once a minute would be no protection. */
export const refreshBounds: DurationBounds = { minMs: 10, maxMs: 60_000 };

/** The usual values of what is switched on by its name. */
export const defaultOverload = {
  refreshMs: 250,
  heap: { shrinkAtRatio: 0.85, shedFromRatio: 0.9, stopAcceptingAtRatio: 0.95 },
  cpu: { of: "container", shedFromRatio: 0.85, shedAllAtRatio: 0.98 },
  cgroupMemory: { stopAcceptingAtRatio: 0.95 },
} as const;

/** Whose CPU is meant. */
export const cpuWords = ["host", "container"] as const;

/** Reads `proxies.overload`; undefined where it is left out: then no manager is written. */
export function readOverload(proxies: Block): OverloadPolicy | undefined {
  const block = proxies.block("overload", overloadShape);
  if (block === undefined) return undefined;
  return {
    refreshMs: block.durationMs("refreshInterval", defaultOverload.refreshMs, refreshBounds),
    heap: readHeap(block),
    cpu: readCpu(block),
    cgroupMemory: readCgroup(block),
    connectionsMax: block.whole("maxConnections", undefined, thresholdBounds),
  };
}

function readHeap(block: Block): HeapOverload | undefined {
  const { heap: usual } = defaultOverload;
  const bytesMax = block.bytes("maxHeap", undefined, memoryBounds);
  const heap = {
    shrinkAtRatio: block.number("shrinkHeapAt", usual.shrinkAtRatio, positiveRatioBounds),
    shedFromRatio: block.number("shedFrom", usual.shedFromRatio, positiveRatioBounds),
    stopAcceptingAtRatio: block.number(
      "stopAcceptingAt",
      usual.stopAcceptingAtRatio,
      positiveRatioBounds,
    ),
  };
  const names = ["shrinkHeapAt", "shedFrom", "stopAcceptingAt"] as const;
  const { shrinkAtRatio, shedFromRatio, stopAcceptingAtRatio } = heap;
  if (shrinkAtRatio > shedFromRatio || shedFromRatio >= stopAcceptingAtRatio) {
    const message = `${shrinkAtRatio}, ${shedFromRatio} and ${stopAcceptingAtRatio} do not rise`;
    const expected = "shrinkHeapAt at most shedFrom, and shedFrom below stopAcceptingAt";
    block.refuseOrder(names, message, expected);
  }
  if (!block.isLeftOut("maxHeap"))
    return bytesMax === undefined ? undefined : { bytesMax, ...heap };
  for (const name of names.filter((each) => block.field(each) !== undefined)) {
    const message = `"${name}" is a part of a heap whose size is not given`;
    block.report(name, { id: "HG207", message, expected: "maxHeap, such as 512Mi" });
  }
  return undefined;
}

function readCpu(overload: Block): CpuOverload | undefined {
  const block = overload.block("cpu", cpuOverloadShape);
  if (block === undefined) return undefined;
  const { cpu: usual } = defaultOverload;
  const shedFromRatio = block.number("shedFrom", usual.shedFromRatio, positiveRatioBounds);
  const shedAllAtRatio = block.number("shedAllAt", usual.shedAllAtRatio, positiveRatioBounds);
  if (shedFromRatio >= shedAllAtRatio) {
    const message = `from ${shedFromRatio} on some are refused, and all at ${shedAllAtRatio}`;
    block.refuseOrder(["shedFrom", "shedAllAt"], message, "shedFrom below shedAllAt");
  }
  const of = block.choice("of", { usual: usual.of, words: cpuWords });
  return { of, shedFromRatio, shedAllAtRatio };
}

function readCgroup(overload: Block): CgroupOverload | undefined {
  const block = overload.block("cgroupMemory", cgroupOverloadShape);
  const { stopAcceptingAtRatio: usual } = defaultOverload.cgroupMemory;
  return (
    block && {
      bytesMax: block.bytes("max", undefined, memoryBounds),
      stopAcceptingAtRatio: block.number("stopAcceptingAt", usual, positiveRatioBounds),
    }
  );
}
