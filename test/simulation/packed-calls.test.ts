import { describe, expect, it } from "vitest";
import type { Charge } from "../../src/core/limits/bucket.js";
import type { Compensation } from "../../src/core/limits/compensation.js";
import type { Role } from "../../src/core/limits/limit.js";
import type { Windows } from "../../src/core/limits/window.js";
import type { StoreRequest, StoreResult } from "../../src/store/limit-store.js";
import {
  decodeGivenBack,
  encodeCompensations,
} from "../../src/store/redis/scripts/give-back-script.js";
import { decodeReply, encodeBatch } from "../../src/store/redis/scripts/pack.js";
import { testCharge } from "../support/charges.js";
import { FakeRandom } from "../support/fake-random.js";
import {
  decodeBatch,
  decodeCompensations,
  encodeGivenBack,
  encodeReply,
} from "../support/packed-calls.js";
import { Dice } from "./dice.js";

const roles: readonly Role[] = ["enforce", "shadow", "quota", "settle"];

function drawWindows(dice: Dice): { readonly windows?: Windows } {
  if (dice.chance(0.5)) return {};
  const startUs = 1 + dice.below(1_000);
  return { windows: { startUs, endUs: startUs + 10, nextEndUs: startUs + 30 } };
}

function drawCharge(dice: Dice): Charge {
  return testCharge({
    key: `key ${dice.below(4)}`,
    hits: dice.below(2 ** 32),
    burst: dice.below(2 ** 32),
    periodUs: 1 + dice.below(2 ** 50),
    cost: dice.below(2 ** 33),
    role: dice.pick(roles),
    isRefund: dice.chance(0.5),
    peekExhausted: dice.chance(0.5),
    ...drawWindows(dice),
  });
}

function drawRequest(dice: Dice): StoreRequest {
  return {
    charges: Array.from({ length: 1 + dice.below(4) }, () => drawCharge(dice)),
    multiplicity: 1 + dice.below(9),
  };
}

/** Of one charge, on one of some keys: several of these in a row may be packed as one. */
function drawPlain(dice: Dice): StoreRequest {
  const charge = testCharge({ key: `key ${dice.below(8)}`, cost: dice.pick([1, 1, 1, 2]) });
  return { charges: [charge], multiplicity: dice.pick([1, 1, 1, 5]) };
}

function drawBatch(dice: Dice): readonly StoreRequest[] {
  return Array.from({ length: 1 + dice.below(9) }, () =>
    dice.chance(0.3) ? drawRequest(dice) : drawPlain(dice),
  );
}

/** The simulated servers read and write what the scripts do. */
describe("a simulated server", () => {
  it("reads what is packed for the scripts", () => {
    for (let seed = 1; seed <= 100; seed += 1) {
      const dice = new Dice(new FakeRandom(seed));
      const batch = drawBatch(dice);
      const packed = encodeBatch(batch);
      expect(decodeBatch(packed.keys, packed.bytes), `seed ${seed}`).toEqual(batch);
      const compensations = batch.flatMap(({ charges }) =>
        charges.map(({ key, hits, periodUs, windows, cost }): Compensation => {
          const drain = windows === undefined ? { hits, periodUs } : { hits, periodUs, windows };
          return { key, ...drain, cost, chargedUs: dice.below(2 ** 50) };
        }),
      );
      const sent = encodeCompensations(compensations);
      expect(decodeCompensations(sent.keys, sent.bytes), `seed ${seed}`).toEqual(compensations);
    }
  });

  it("replies as the scripts do", () => {
    const nowUs = 1_700_000_000_000_001;
    const bucket = (level: number) => ({ level, tUs: nowUs - level });
    const results: StoreResult[] = [1, 3].map((level) => ({
      grantedCount: level,
      results: [{ isOver: level > 1, bucket: bucket(level) }],
      nowUs,
    }));
    const batch = results.map(() => ({ charges: [testCharge()], multiplicity: 1 }));
    const outcomes = results.map((result) => ({ kind: "decided", result }));
    expect(decodeReply(encodeReply(results), batch)).toEqual({ outcomes, badBucketCount: 0 });
    const givenBack = { buckets: [bucket(1), bucket(2)], nowUs };
    expect(decodeGivenBack(encodeGivenBack(givenBack), 2)).toEqual(givenBack);
  });
});
