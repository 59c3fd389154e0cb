import { describe, expect, it } from "vitest";
import { busyQueue } from "../../../../src/core/concurrency/busy-queue.js";

describe("busyQueue", () => {
  it.each([
    // idle / 0.004 * (1 - 1 / load) is (2 / 3) / 0.012 for one worker at three times its capacity.
    { workerCount: 1, loadRatio: 3, queue: Math.log(2 / 3 / 0.012) / Math.log(3) },
    { workerCount: 10, loadRatio: 3, queue: 2.1 },
    { workerCount: 10, loadRatio: 1.1, queue: 28 },
  ])("is $queue for $workerCount workers at $loadRatio times their capacity", (row) => {
    expect(busyQueue(row.workerCount, row.loadRatio)).toBeCloseTo(row.queue, 0);
  });

  it.each([
    { workerCount: 10, loadRatio: 1_000, queue: 1.5 },
    { workerCount: 1, loadRatio: 0, queue: 19 },
    { workerCount: 1, loadRatio: 1, queue: 19 },
    { workerCount: 200, loadRatio: 0.5, queue: 51 },
  ])("stays within its bounds for $workerCount workers at $loadRatio", (row) => {
    const queue = busyQueue(row.workerCount, row.loadRatio);
    expect(queue).toBeGreaterThanOrEqual(1.5);
    expect(queue).toBeLessThanOrEqual(row.workerCount + 18);
    expect(queue).toBeCloseTo(row.queue, 0);
  });
});
