import { describe, expect, it } from "vitest";
import { shuffled, unshuffled } from "../../../../src/core/waiting-room/shuffle.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { runSeeds, seedsFrom } from "../../../support/seeds.js";

describe("shuffled() and unshuffled()", () => {
  it.each([1, 2, 3, 4, 5, 7, 8, 9, 100, 1_000, 1_023, 1_024, 1_025, 40_000])(
    "permute %d numbers",
    (count) => {
      for (const seed of [0, 1, 0xffff_ffff]) {
        const places = new Set<number>();
        for (let index = 0; index < count; index += 1) {
          const place = shuffled(index, { count, seed });
          if (unshuffled(place, { count, seed }) !== index) expect.fail(`${index} comes back`);
          places.add(place);
        }
        expect(places.size).toBe(count);
        expect(Math.max(...places)).toBe(count - 1);
      }
    },
  );

  it("permute ranges of up to 32 bits", () => {
    const random = new FakeRandom(1);
    for (const count of [2 ** 31 + 1, 2 ** 32]) {
      for (let i = 0; i < 1_000; i += 1) {
        const index = Math.floor(random.next() * count);
        expect(unshuffled(shuffled(index, { count, seed: i }), { count, seed: i })).toBe(index);
      }
    }
  });

  // 99 degrees of freedom: above 149 once in 1,000 tests, and above 180 once in a million.
  it("give each number each place equally often", async () => {
    await runSeeds(seedsFrom(100, 20), (first) => {
      const count = 100;
      const draws = 2_000;
      const random = new FakeRandom(first);
      const timesAt = new Float64Array(count * count);
      for (let draw = 0; draw < draws; draw += 1) {
        const seed = Math.floor(random.next() * 2 ** 32);
        for (let index = 0; index < count; index += 1) {
          const at = index * count + shuffled(index, { count, seed });
          timesAt[at] = (timesAt[at] ?? 0) + 1;
        }
      }
      const expected = draws / count;
      for (let index = 0; index < count; index += 1) {
        const row = timesAt.subarray(index * count, (index + 1) * count);
        const chiSquare = row.reduce((sum, n) => sum + (n - expected) ** 2 / expected, 0);
        expect(chiSquare).toBeLessThan(190);
      }
    });
  });

  it("give neighbours places that have nothing to do with each other", () => {
    const count = 1_000;
    const random = new FakeRandom(5);
    let product = 0;
    const draws = 20_000;
    for (let draw = 0; draw < draws; draw += 1) {
      const shuffle = { count, seed: Math.floor(random.next() * 2 ** 32) };
      const index = Math.floor(random.next() * (count - 1));
      const centre = (count - 1) / 2;
      product += (shuffled(index, shuffle) - centre) * (shuffled(index + 1, shuffle) - centre);
    }
    // The standard deviation of the correlation is 1 / sqrt(draws), 0.007.
    expect(Math.abs(product / draws / (count ** 2 / 12))).toBeLessThan(0.035);
  });

  it("are fair over seeds: Jain's index of mean places is 1", () => {
    const count = 200;
    const draws = 5_000;
    const random = new FakeRandom(9);
    const sums = new Float64Array(count);
    for (let draw = 0; draw < draws; draw += 1) {
      const shuffle = { count, seed: Math.floor(random.next() * 2 ** 32) };
      for (let i = 0; i < count; i += 1) sums[i] = (sums[i] ?? 0) + shuffled(i, shuffle);
    }
    const sum = sums.reduce((left, right) => left + right, 0);
    const squares = sums.reduce((left, right) => left + right ** 2, 0);
    expect(sum ** 2 / (count * squares)).toBeGreaterThan(0.9995);
  });
});
