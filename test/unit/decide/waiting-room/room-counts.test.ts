import { describe, expect, it } from "vitest";
import { RoomCounts } from "../../../../src/decide/waiting-room/room-counts.js";
import { roomWaitBoundsSeconds } from "../../../../src/decide/waiting-room/room-view.js";

const announced = { lowSeconds: 20, middleSeconds: 40, highSeconds: 60, rangeFactor: 1 };

/** A visitor who joined at second 100. */
const waiting = (number: number) => {
  return { kind: "waiting", lineId: 7, number, second: 100, announced } as const;
};

/** Counts waits of these seconds, of one visitor each. */
function countsOf(seconds: readonly number[]): RoomCounts {
  const counts = new RoomCounts();
  for (const [i, each] of seconds.entries()) counts.entered(waiting(i), 100 + each);
  return counts;
}

describe("RoomCounts", () => {
  it("puts a wait into the bucket of the least bound that it does not exceed", () => {
    const [least = 0] = roomWaitBoundsSeconds;
    const longest = roomWaitBoundsSeconds.at(-1) ?? 0;
    const { counts } = countsOf([0, least, least + 1, longest, longest + 1]).waits;
    const none = roomWaitBoundsSeconds.slice(3).map(() => 0);
    expect(counts).toEqual([2, 1, ...none, 1, 1]);
  });

  it("counts which waits were in the range that was told, its ends included", () => {
    const { endedCount, inRangeCount } = countsOf([19, 20, 60, 61]).waits;
    expect([endedCount, inRangeCount]).toEqual([4, 2]);
  });

  it("adds up what was told and what it became", () => {
    const counts = countsOf([30, 45]);
    expect(counts.waits).toMatchObject({ expectedSeconds: 80, actualSeconds: 75 });
  });

  it("counts each visitor once, and nobody who was told no range", () => {
    const counts = new RoomCounts();
    expect(counts.entered(waiting(1), 130)).toBe(30);
    expect(counts.entered(waiting(1), 140)).toBeUndefined();
    expect(counts.entered({ ...waiting(2), announced: undefined }, 130)).toBeUndefined();
    expect(counts.waits.endedCount).toBe(1);
  });

  it("takes a wait that ends before it began for none", () => {
    const counts = new RoomCounts();
    expect(counts.entered(waiting(1), 90)).toBe(0);
    expect(counts.waits).toMatchObject({ actualSeconds: 0, inRangeCount: 0 });
  });

  it("counts outcomes, and knows all of them from the beginning", () => {
    const counts = new RoomCounts();
    counts.count("joined");
    counts.count("joined");
    expect([counts.outcomes.get("joined"), counts.outcomes.get("full")]).toEqual([2, 0]);
  });
});
