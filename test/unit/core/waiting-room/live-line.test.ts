import { describe, expect, it } from "vitest";
import { LiveLine } from "../../../../src/core/waiting-room/live-line.js";
import { calledBit, liveBlockSize } from "../../../../src/core/waiting-room/room-line.js";

/** Words of visitors who are all present. */
function present(count: number): Uint32Array {
  return new Uint32Array(count).fill(7);
}

function lineOf(count: number): LiveLine {
  const line = new LiveLine({ calledPlace: 0, shuffles: [] });
  line.read(0, present(count), 1);
  return line;
}

describe("LiveLine", () => {
  it("counts who is present in each block of places, from the called one on", () => {
    const line = lineOf(4 * liveBlockSize);
    expect(line.liveByBlock).toEqual([1_024, 1_024, 1_024, 1_024]);
    line.advance(liveBlockSize + 24);
    expect(line.liveByBlock).toEqual([1_000, 1_024, 1_024]);
    line.advance(2 * liveBlockSize + 1);
    expect(line.liveByBlock).toEqual([1_023, 1_024]);
    expect(line.liveCount).toBe(2_047);
  });

  it("knows who is at a place after it has forgotten those who were called", () => {
    const line = lineOf(1_000);
    line.advance(600);
    line.forgetCalled();
    expect(line.base).toBe(600);
    const places = [599, 600, 999, 1_000];
    expect(places.map((place) => line.presentAt(place))).toEqual([undefined, 600, 999, undefined]);
    expect(places.map((place) => line.hasRead(place))).toEqual([true, true, true, false]);
  });

  it("counts who has left, and not who was called past the order", () => {
    const line = lineOf(4);
    line.read(0, Uint32Array.of(0, 7, calledBit + 1, 7), 1);
    expect(line.takeLeftCount()).toBe(1);
    expect(line.takeLeftCount()).toBe(0);
    expect(line.liveCount).toBe(2);
  });
});
