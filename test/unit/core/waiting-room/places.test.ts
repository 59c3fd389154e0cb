import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  aheadOf,
  numberAtPlace,
  openShuffles,
  placeOf,
} from "../../../../src/core/waiting-room/places.js";
import {
  frontBytesMax,
  type LineShuffle,
  liveBlockSize,
} from "../../../../src/core/waiting-room/room-line.js";
import { propertyRuns } from "../../../support/seeds.js";

describe("placeOf() and numberAtPlace()", () => {
  it("leave numbers where they are without a shuffle, and outside of one", () => {
    const runs = [{ from: 10, count: 5, seed: 3 }];
    expect([0, 9, 15, 2 ** 40].map((number) => placeOf(number, runs))).toEqual([0, 9, 15, 2 ** 40]);
    expect(placeOf(12, [])).toBe(12);
  });

  it("undo each other, over runs that overlap", () => {
    fc.assert(
      fc.property(shuffles(), (runs) => {
        const places = new Set<number>();
        for (let number = 0; number < 600; number += 1) {
          const place = placeOf(number, runs);
          expect(numberAtPlace(place, runs)).toBe(number);
          places.add(place);
        }
        expect(places.size).toBe(600);
      }),
      propertyRuns(20),
    );
  });
});

describe("openShuffles()", () => {
  it("keeps the places that may still be called", () => {
    fc.assert(
      fc.property(shuffles(), fc.nat(600), (runs, calledPlace) => {
        const open = openShuffles(runs, calledPlace);
        for (let number = 0; number < 600; number += 1) {
          const place = placeOf(number, runs);
          const openPlace = placeOf(number, open);
          if (place >= calledPlace) expect(openPlace).toBe(place);
          else expect(openPlace).toBeLessThan(calledPlace);
        }
      }),
      propertyRuns(100),
    );
  });

  it("forgets runs that are called through, unless a later one overlaps them", () => {
    const first = { from: 0, count: 100, seed: 1 };
    const second = { from: 50, count: 100, seed: 2 };
    const third = { from: 200, count: 10, seed: 3 };
    expect(openShuffles([first, second, third], 120)).toEqual([first, second, third]);
    expect(openShuffles([first, second, third], 150)).toEqual([third]);
    expect(openShuffles([first, second, third], 210)).toEqual([]);
  });
});

describe("aheadOf()", () => {
  const calledPlace = 3 * liveBlockSize + 100;

  it("is exact at the front", () => {
    const liveAtFront = new Uint8Array(frontBytesMax);
    const present = [100, 101, 105, 700, 1_023, 1_024, 2_500];
    for (const at of present) liveAtFront[at >> 3] = (liveAtFront[at >> 3] ?? 0) | (1 << (at & 7));
    const status = { calledPlace, nextNumber: 1e6, liveByBlock: [5, 1, 1, 0], liveAtFront };
    for (let place = calledPlace; place < calledPlace + 3_000; place += 1) {
      const expected = present.filter((at) => 3 * liveBlockSize + at < place).length;
      expect(aheadOf(place, status)).toBe(expected);
    }
  });

  it("is 0 for places that were called", () => {
    const liveAtFront = new Uint8Array(frontBytesMax).fill(255);
    const status = { calledPlace, nextNumber: 1e6, liveByBlock: [900], liveAtFront };
    expect([0, calledPlace - 1, calledPlace].map((place) => aheadOf(place, status))).toEqual([
      0, 0, 0,
    ]);
  });

  it("counts those who have joined since the last count as present", () => {
    const liveAtFront = new Uint8Array(frontBytesMax).fill(0b101);
    const status = { calledPlace: 0, nextNumber: 16, liveByBlock: [4], liveAtFront };
    expect([8, 15, 16, 17, 30].map((place) => aheadOf(place, status))).toEqual([2, 4, 4, 5, 18]);
  });

  it("counts whole blocks further behind, and a share of its own", () => {
    const liveByBlock = [924, 1_000, 512, 100, 1_024, 512, 40];
    const nextNumber = 9 * liveBlockSize + 80;
    const status = { calledPlace, nextNumber, liveByBlock, liveAtFront: new Uint8Array() };
    const at = (block: number, place: number): number =>
      aheadOf((3 + block) * liveBlockSize + place, status);
    expect(at(4, 0)).toBe(924 + 1_000 + 512 + 100);
    expect(at(5, 512)).toBe(924 + 1_000 + 512 + 100 + 1_024 + 256);
    // Of the last block, 80 places are given out.
    expect(at(6, 40)).toBe(924 + 1_000 + 512 + 100 + 1_024 + 512 + 20);
    expect(at(6, 79)).toBe(924 + 1_000 + 512 + 100 + 1_024 + 512 + 39);
    expect(at(6, 90)).toBe(924 + 1_000 + 512 + 100 + 1_024 + 512 + 40 + 10);
  });

  it("never rises while counts fall and places are called", () => {
    const counts = fc.array(fc.nat(liveBlockSize), { minLength: 12, maxLength: 12 });
    const leaving = fc.array(fc.record({ block: fc.nat(11), count: fc.nat(300) }), {
      maxLength: 20,
    });
    const property = fc.property(
      counts,
      leaving,
      fc.nat(11 * liveBlockSize),
      (first, steps, place) => {
        const liveByBlock = [...first];
        const nextNumber = 12 * liveBlockSize;
        let before = Number.POSITIVE_INFINITY;
        for (const { block, count } of steps) {
          liveByBlock[block] = Math.max(0, (liveByBlock[block] ?? 0) - count);
          const status = { calledPlace: 0, nextNumber, liveByBlock, liveAtFront: new Uint8Array() };
          const ahead = aheadOf(place, status);
          expect(ahead).toBeLessThanOrEqual(before);
          before = ahead;
        }
      },
    );
    fc.assert(property, propertyRuns(200));
  });
});

/** Runs as a leader makes them: each begins at the called place of its time. */
function shuffles(): fc.Arbitrary<readonly LineShuffle[]> {
  const run = fc.record({
    gap: fc.nat(100),
    count: fc.integer({ min: 1, max: 250 }),
    seed: fc.nat(),
  });
  return fc.array(run, { maxLength: 4 }).map((runs) => {
    let from = 0;
    return runs.map(({ gap, count, seed }) => {
      from += gap;
      return { from, count, seed };
    });
  });
}
