import { describe, expect, it } from "vitest";
import type { Bucket } from "../../../../src/core/limits/bucket.js";
import { decideRepeated } from "../../../../src/core/limits/gcra.js";
import { throttleKey } from "../../../../src/core/limits/key.js";
import type { LimitKey } from "../../../../src/core/limits/limit.js";
import {
  drainsTooSlowly,
  type ThrottleNumbers,
  throttleCharge,
  throttlePeriodSecondsMax,
  throttleReply,
} from "../../../../src/core/limits/throttle.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { seedsFrom } from "../../../support/seeds.js";
import { ThrottleModel } from "../../../support/throttle-model.js";

type Table = Map<LimitKey, Bucket>;

function throttle(table: Table, numbers: ThrottleNumbers, nowUs: number) {
  const charge = throttleCharge(throttleKey({ value: "k" }), numbers, "enforce");
  const request = { charges: [charge], multiplicity: 1 };
  const { grantedCount, results } = decideRepeated(request, table, nowUs);
  const bucket = results[0]?.bucket ?? { level: 0, tUs: nowUs };
  return throttleReply(numbers, charge, { isDenied: grantedCount === 0, bucket, nowUs });
}

const startUs = 1_700_000_000_000_000;

describe("throttleReply()", () => {
  it("answers the example of redis-cell's documentation", () => {
    const numbers = { maxBurst: 15, count: 30, periodSeconds: 60, quantity: 1 };
    const table: Table = new Map();
    expect(throttle(table, numbers, startUs)).toEqual([0, 16, 15, -1, 2]);
    for (let used = 2; used <= 16; used += 1) throttle(table, numbers, startUs);
    expect(throttle(table, numbers, startUs)).toEqual([1, 16, 0, 2, 32]);
    expect(throttle(table, numbers, startUs + 1_999_999)).toEqual([1, 16, 0, 1, 31]);
    expect(throttle(table, numbers, startUs + 2_000_000)).toEqual([0, 16, 0, -1, 32]);
  });

  const once = { maxBurst: 4, count: 1, periodSeconds: 10, quantity: 1 };
  it.each<[string, Partial<ThrottleNumbers>, readonly number[]]>([
    ["a peek", { quantity: 0 }, [0, 5, 5, -1, 0]],
    ["all at once", { quantity: 5 }, [0, 5, 0, -1, 50]],
    ["more than there ever is", { quantity: 6 }, [1, 5, 5, -1, 0]],
    ["no burst", { maxBurst: 0 }, [0, 1, 0, -1, 10]],
    ["less than a second for each", { count: 3, periodSeconds: 1 }, [0, 5, 4, -1, 1]],
  ])("answers %s", (_, changed, reply) => {
    expect(throttle(new Map(), { ...once, ...changed }, startUs)).toEqual(reply);
  });

  it("keeps what was used when the numbers change", () => {
    const table: Table = new Map();
    throttle(table, { ...once, quantity: 3 }, startUs);
    expect(throttle(table, { ...once, maxBurst: 9 }, startUs)).toEqual([0, 10, 6, -1, 40]);
    expect(throttle(table, { ...once, maxBurst: 1 }, startUs)).toEqual([1, 2, 0, 30, 40]);
  });

  // Steps in which a whole number of the law's units drains, so that nothing is rounded.
  it.each(seedsFrom(1, 100))("equals the exact model where nothing is rounded, seed %i", (seed) => {
    const random = new FakeRandom(seed);
    const upTo = (max: number): number => Math.floor(random.next() * max);
    const numbers = { maxBurst: upTo(20), count: 1 + upTo(50), periodSeconds: 2 ** upTo(8) };
    const table: Table = new Map();
    const model = new ThrottleModel(numbers);
    const tokenUs = (numbers.periodSeconds * 1_000_000) / numbers.count;
    let nowUs = startUs - (startUs % 1_000_000);
    for (let step = 0; step < 100; step += 1) {
      nowUs += 15_625 * upTo((3 * tokenUs) / 15_625 + 2);
      const quantity = upTo(5) === 0 ? upTo(numbers.maxBurst + 3) : upTo(3);
      const { reply } = model.look(quantity, nowUs);
      if (reply[0] === 0) model.take(quantity, nowUs);
      expect([step, throttle(table, { ...numbers, quantity }, nowUs)]).toEqual([step, reply]);
    }
  });

  it.each(seedsFrom(1, 100))("is never looser than the exact model, seed %i", (seed) => {
    const random = new FakeRandom(seed);
    const below = (max: number): number => Math.floor(max ** random.next());
    const numbers = { maxBurst: below(1_000), count: below(100_000), periodSeconds: below(1_000) };
    const table: Table = new Map();
    const model = new ThrottleModel(numbers);
    let nowUs = startUs;
    for (let step = 0; step < 200; step += 1) {
      nowUs += below((4_000_000 * numbers.periodSeconds) / numbers.count + 2);
      const quantity = below(numbers.maxBurst + 3);
      const exact = model.look(quantity, nowUs);
      const [isLimited, , remaining, retry, reset] = throttle(
        table,
        { ...numbers, quantity },
        nowUs,
      );
      // Rounding takes less than a unit, 2^-20 of a token, from each command before.
      const slack = (step + 1) / 2 ** 20;
      if (isLimited === 0) {
        expect(exact.over).toBeLessThanOrEqual(0);
        model.take(quantity, nowUs);
      } else expect(exact.over).toBeGreaterThan(-slack);
      if (isLimited !== exact.reply[0]) continue;
      expect([0, 1]).toContain(exact.reply[2] - remaining);
      expect([0, 1]).toContain(reset - exact.reply[4]);
      expect([0, 1]).toContain(retry - exact.reply[3]);
    }
  });
});

describe("drainsTooSlowly()", () => {
  it.each([
    [{ maxBurst: 0, count: 1, periodSeconds: throttlePeriodSecondsMax }, false],
    [{ maxBurst: 1, count: 1, periodSeconds: throttlePeriodSecondsMax }, true],
    [{ maxBurst: 1, count: 2, periodSeconds: throttlePeriodSecondsMax }, false],
    [{ maxBurst: 4_294_967_294, count: 1, periodSeconds: 1 }, true],
  ])("of %o: %s", (numbers, isSlow) => {
    expect(drainsTooSlowly({ ...numbers, quantity: 1 })).toBe(isSlow);
  });
});

describe("throttleKey()", () => {
  it("tells texts from digests, and never makes the key of a policy", () => {
    expect(throttleKey({ value: "ip:7" })).toBe("2t4:ip:7");
    expect(throttleKey({ digest: "ab" })).toBe("2t#ab");
    expect(throttleKey({ value: "#ab" })).toBe("2t3:#ab");
  });
});
