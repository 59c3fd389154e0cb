import { describe, expect, it } from "vitest";
import { heapRatioMax, watchHeap } from "../../../src/app/heap-watch.js";
import { FakeClock } from "../../support/fake-clock.js";

describe("watchHeap()", () => {
  it("says once a second whether the heap is as good as full", () => {
    const clock = new FakeClock();
    let ratio = heapRatioMax;
    const watch = watchHeap(clock, () => ratio);
    expect(watch.isFull()).toBe(false);
    ratio = heapRatioMax + 0.01;
    clock.advance(999);
    expect(watch.isFull()).toBe(false);
    clock.advance(1);
    expect(watch.isFull()).toBe(true);
    ratio = 0.5;
    clock.advance(1_000);
    expect(watch.isFull()).toBe(false);
    watch.cancel();
    expect(clock.timerCount).toBe(0);
  });

  it("finds room in the heap of this process", () => {
    const watch = watchHeap(new FakeClock());
    expect(watch.isFull()).toBe(false);
    watch.cancel();
  });
});
