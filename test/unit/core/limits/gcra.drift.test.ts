import { describe, expect, it } from "vitest";
import {
  type Bucket,
  type Charge,
  retryAfterUs,
  unitsPerHit,
} from "../../../../src/core/limits/bucket.js";
import { decideRequest } from "../../../../src/core/limits/gcra.js";
import { hitsMax } from "../../../../src/core/limits/limit.js";
import { testCharge } from "../../../support/charges.js";
import { RecordedTable } from "../../../support/recorded-table.js";
import { seedCount } from "../../../support/seeds.js";

const chargeCount = seedCount(100_000);

/** What a caller got who always takes the next charge as soon as it fits. */
interface Greedy {
  readonly admittedHits: bigint;
  readonly elapsedUs: bigint;
  readonly levelUnits: number;
}

/**
 * Empties the bucket, then takes `chargeCount` charges, each at the first moment it fits, some with
 * a refused ask a microsecond before. Time starts anew at each charge: thousands of yearly charges
 * take longer than microseconds are whole numbers.
 */
function takeGreedily(charge: Charge): Greedy {
  const table = new RecordedTable();
  let elapsedUs = 0n;
  decideRequest([{ ...charge, cost: charge.burst }], table, 0);
  for (let i = 0; i < chargeCount; i += 1) {
    const waitUs = retryAfterUs(charge, bucketOf(charge, table), 0);
    if (waitUs === undefined) throw new Error("the charge never fits");
    if (waitUs > 0 && i % 8 === 0 && !decideRequest([charge], table, waitUs - 1).isDenied) {
      throw new Error("admitted before its time");
    }
    if (decideRequest([charge], table, waitUs).isDenied) throw new Error("refused in its time");
    elapsedUs += BigInt(waitUs);
    table.buckets.set(charge.key, { level: bucketOf(charge, table).level, tUs: 0 });
    table.takeWrites();
  }
  return {
    admittedHits: BigInt(charge.burst) + BigInt(charge.cost) * BigInt(chargeCount),
    elapsedUs,
    levelUnits: bucketOf(charge, table).level,
  };
}

function bucketOf(charge: Charge, table: RecordedTable): Bucket {
  const bucket = table.get(charge.key);
  if (bucket === undefined) throw new Error("the bucket ran empty");
  return bucket;
}

describe("decideRequest() over many charges", () => {
  it.each([
    { name: "300 a second", hits: 300, periodUs: 1_000_000, burst: 300, cost: 1 },
    { name: "3 in 10 ms", hits: 3, periodUs: 10_000, burst: 2, cost: 1 },
    { name: "7 a day", hits: 7, periodUs: 86_400_000_000, burst: 7, cost: 1 },
    { name: "1 a year", hits: 1, periodUs: 31_536_000_000_000, burst: 1, cost: 1 },
    { name: "2^32 - 1 a second", hits: hitsMax, periodUs: 1_000_000, burst: hitsMax, cost: 4_295 },
  ])("drifts less than 1 ppm, and never in favour of callers: $name", (row) => {
    const { name: _, ...limit } = row;
    const charge = testCharge(limit);
    const { admittedHits, elapsedUs, levelUnits } = takeGreedily(charge);
    // The bucket never ran empty, so its exact level is what went in less what drained. Both in
    // units of 2^-20 hit, times the period to stay whole.
    const period = BigInt(charge.periodUs);
    const taken = admittedHits * BigInt(unitsPerHit) * period;
    const exact = taken - elapsedUs * BigInt(charge.hits) * BigInt(unitsPerHit);
    const drift = BigInt(levelUnits) * period - exact;
    expect(drift >= 0n).toBe(true);
    expect(drift * 1_000_000n < taken).toBe(true);
  });
});
