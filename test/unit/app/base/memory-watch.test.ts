import { describe, expect, it } from "vitest";
import {
  collectEveryMs,
  heapRatioMax,
  inUseRatioMax,
  ownMemory,
  type ProcessMemory,
  quietBytesMax,
  residentRatioMax,
  watchMemory,
  youngEveryMs,
  youngHeldBytesMax,
} from "../../../../src/app/base/memory-watch.js";
import type { MemoryCause } from "../../../../src/decide/rate-limit/pressure.js";
import { FakeClock } from "../../../support/fake-clock.js";

/** A process whose memory a test sets. */
class TestMemory implements ProcessMemory {
  ratio = 0;
  bytes = 0;
  inUse = 0;
  young = { held: 0, used: 0 };
  collectCount = 0;
  youngCollectCount = 0;
  #reported: (() => void) | undefined;

  heapRatio(): number {
    return this.ratio;
  }

  residentBytes(): number {
    return this.bytes;
  }

  inUseBytes(): number {
    return this.inUse;
  }

  onCollected(reported: () => void): () => void {
    this.#reported = reported;
    return () => {
      this.#reported = undefined;
    };
  }

  collect(): void {
    this.collectCount += 1;
  }

  youngBytes(): { held: number; used: number } {
    return this.young;
  }

  collectYoung(): void {
    this.youngCollectCount += 1;
    this.young = { held: youngHeldBytesMax, used: 0 };
  }

  /** V8 has looked at everything. */
  collected(): void {
    this.#reported?.();
  }

  get isWatched(): boolean {
    return this.#reported !== undefined;
  }
}

function startWatch(bytesMax?: number) {
  const clock = new FakeClock();
  const memory = new TestMemory();
  const pressure: { memoryFull: MemoryCause | undefined } = { memoryFull: undefined };
  const cancel = watchMemory({ clock, pressure, bytesMax, memory });
  return { clock, memory, pressure, cancel };
}

describe("watchMemory()", () => {
  it("looks four times a second while the process idles", () => {
    const clock = new FakeClock();
    const memory = new TestMemory();
    const pressure: { memoryFull: MemoryCause | undefined } = { memoryFull: undefined };
    const parts = { clock, pressure, bytesMax: 1_000, memory, isIdle: () => true };
    const cancel = watchMemory(parts);
    memory.bytes = 1_000;
    memory.inUse = 1_000;
    clock.advance(249);
    expect(pressure.memoryFull).toBeUndefined();
    clock.advance(1);
    expect(pressure.memoryFull).toBe("residentMemory");
    cancel();
  });

  it("counts of the heap what lived through the collector's last round, and no garbage", () => {
    const { clock, memory, pressure, cancel } = startWatch();
    memory.ratio = 1;
    clock.advance(10_000);
    expect(pressure.memoryFull).toBeUndefined();
    memory.ratio = heapRatioMax + 0.01;
    memory.collected();
    expect(pressure.memoryFull).toBe("heap");
    memory.ratio = heapRatioMax;
    clock.advance(1_000);
    expect(pressure.memoryFull).toBe("heap");
    memory.collected();
    expect(pressure.memoryFull).toBeUndefined();
    cancel();
    expect(clock.timerCount).toBe(0);
    expect(memory.isWatched).toBe(false);
  });

  it("counts resident memory as a part of what the process may have", () => {
    const { clock, memory, pressure } = startWatch(1_000);
    memory.inUse = 1_000 * inUseRatioMax + 1;
    memory.bytes = 1_000 * residentRatioMax;
    clock.advance(100);
    expect(pressure.memoryFull).toBeUndefined();
    memory.bytes += 1;
    clock.advance(100);
    expect(pressure.memoryFull).toBe("residentMemory");
    memory.bytes = 0;
    clock.advance(100);
    expect(pressure.memoryFull).toBeUndefined();
  });

  it("does not count what is resident and no more in use: it might stay so for ever", () => {
    const { clock, memory, pressure } = startWatch(1_000);
    memory.bytes = 1_000;
    memory.inUse = 1_000;
    clock.advance(100);
    expect(pressure.memoryFull).toBe("residentMemory");
    memory.inUse = 1_000 * inUseRatioMax;
    memory.collected();
    expect(pressure.memoryFull).toBeUndefined();
    clock.advance(60_000);
    expect([pressure.memoryFull, memory.collectCount]).toEqual([undefined, 1]);
  });

  it("knows no bound where there is none", () => {
    const { clock, memory, pressure } = startWatch();
    memory.inUse = Number.MAX_SAFE_INTEGER;
    memory.bytes = Number.MAX_SAFE_INTEGER;
    clock.advance(100);
    expect(pressure.memoryFull).toBeUndefined();
  });

  it("asks for a round from time to time while memory is used up, and never else", () => {
    const { clock, memory } = startWatch(1_000);
    clock.advance(60_000);
    expect(memory.collectCount).toBe(0);
    memory.bytes = 1_000;
    memory.inUse = 1_000;
    clock.advance(100);
    expect(memory.collectCount).toBe(1);
    clock.advance(collectEveryMs - 100);
    expect(memory.collectCount).toBe(1);
    // V8 has had a reason of its own.
    memory.collected();
    clock.advance(collectEveryMs - 100);
    expect(memory.collectCount).toBe(1);
    clock.advance(100);
    expect(memory.collectCount).toBe(2);
  });

  it("gives back what young objects had once the process idles, and not before", () => {
    const { clock, memory } = startWatch();
    const stepAfter = (held: number, used: number): number => {
      memory.young = { held, used };
      clock.advance(youngEveryMs);
      return memory.youngCollectCount;
    };
    const large = youngHeldBytesMax + 1;
    // It has made too much, and then so much that V8 has collected.
    expect(stepAfter(large, 10_000_000)).toBe(0);
    expect(stepAfter(large, 10_000_000 + quietBytesMax)).toBe(0);
    expect(stepAfter(large, 9_999_999 + quietBytesMax)).toBe(0);
    expect(stepAfter(large, 9_999_998 + 2 * quietBytesMax)).toBe(1);
    expect(stepAfter(youngHeldBytesMax, 1)).toBe(1);
    expect(stepAfter(large, 2)).toBe(2);
  });

  it("collects this process's young objects", () => {
    const makeGarbage = (): number => Array.from({ length: 10_000 }, (_, i) => ({ i })).length;
    expect(makeGarbage()).toBe(10_000);
    const before = ownMemory.youngBytes();
    ownMemory.collectYoung();
    const after = ownMemory.youngBytes();
    expect(after.used).toBeLessThan(before.used);
    expect(after.held).toBeGreaterThan(after.used);
  });

  it("is told of this process's own rounds, also of those that it asks for", async () => {
    let cancel = (): void => {};
    const collected = new Promise<void>((resolve) => {
      cancel = ownMemory.onCollected(resolve);
    });
    ownMemory.collect();
    await collected;
    cancel();
    expect(ownMemory.heapRatio()).toBeGreaterThan(0);
    expect(ownMemory.heapRatio()).toBeLessThan(heapRatioMax);
    expect(ownMemory.inUseBytes()).toBeGreaterThan(1_000_000);
    expect(ownMemory.residentBytes()).toBeGreaterThan(ownMemory.inUseBytes());
  });
});
