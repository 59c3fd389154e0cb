import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Bucket, type Charge, retryAfterUs } from "../../../../src/core/limits/bucket.js";
import { type BucketTable, decideRequest } from "../../../../src/core/limits/gcra.js";
import { testCharge } from "../../../support/charges.js";
import { metCount, propertyRuns } from "../../../support/seeds.js";

/**
 * Replicas that hold different versions of one limit, as while an edit is on its way to them, and
 * ask for one key in turn.
 */

const startUs = 1_800_000_000_000_000;
const secondUs = 1_000_000;

type Version = Pick<Charge, "hits" | "periodUs" | "burst">;

/** A key's one bucket, forgotten when whoever wrote it would have seen it empty. */
class ExpiringTable implements BucketTable {
  #kept: { readonly bucket: Bucket; readonly untilUs: number } | undefined;
  nowUs = startUs;

  get(): Bucket | undefined {
    return this.#kept === undefined || this.#kept.untilUs <= this.nowUs
      ? undefined
      : this.#kept.bucket;
  }

  set(_key: string, bucket: Bucket, timeToFullUs: number): void {
    this.#kept = { bucket, untilUs: this.nowUs + timeToFullUs };
  }

  delete(): void {
    this.#kept = undefined;
  }
}

/** One ask that was decided; refused ones admit 0, refunds less. */
interface Decided {
  readonly atUs: number;
  readonly version: Version;
  readonly admittedHits: number;
}

/** Everyday limits, and bursts and rates a million times apart. */
const bursts = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constantFrom(100, 1_000_000));
const rates = fc.oneof(
  fc.record({ hits: fc.integer({ min: 1, max: 20 }), periodUs: fc.constant(secondUs) }),
  fc.constantFrom(
    { hits: 1, periodUs: 7 * secondUs },
    { hits: 1_000_000, periodUs: secondUs },
    { hits: 3, periodUs: 10_000 },
  ),
);
const versionLists: fc.Arbitrary<readonly Version[]> = fc.oneof(
  // The burst alone is edited.
  fc
    .record({ rate: rates, list: fc.array(bursts, { minLength: 2, maxLength: 3 }) })
    .map(({ rate, list }) => list.map((burst) => ({ ...rate, burst }))),
  fc.array(
    fc.record({ rate: rates, burst: bursts }).map(({ rate, burst }) => ({ ...rate, burst })),
    { minLength: 2, maxLength: 3 },
  ),
);

const steps = fc.array(
  fc.record({
    version: fc.nat(2),
    gapUs: fc.constantFrom(0, 0, 0, 1, 3_333, 100_000, secondUs, 10 * secondUs),
    /** The part of the version's burst that is asked for, at least one hit. */
    ratio: fc.constantFrom(0, 0, 0, 0.1, 0.5, 1),
    kind: fc.constantFrom("hit", "hit", "hit", "hit", "settle", "refund"),
  }),
  { minLength: 1, maxLength: 60, size: "max" },
);

/** How often each step is asked at its moment: greedily, so that what can be admitted is. */
const greed = 4;

function play(
  versions: readonly Version[],
  list: typeof steps extends fc.Arbitrary<infer T> ? T : never,
): readonly Decided[] {
  const table = new ExpiringTable();
  const decided: Decided[] = [];
  for (const { version: index, gapUs, ratio, kind } of list) {
    table.nowUs += gapUs;
    const version = versions[index % versions.length];
    if (version === undefined) throw new Error("a history has versions");
    const cost = Math.max(1, Math.floor(version.burst * ratio));
    const role = kind === "settle" ? "settle" : "enforce";
    const charge = testCharge({ ...version, cost, role, isRefund: kind === "refund" });
    for (let i = 0; i < greed; i += 1) {
      const { isDenied } = decideRequest([charge], table, table.nowUs);
      const admittedHits = charge.isRefund ? -cost : isDenied ? 0 : cost;
      decided.push({ atUs: table.nowUs, version, admittedHits });
    }
  }
  return decided;
}

/** Whether one rate is above another, exactly. */
function isFaster(one: Version, other: Version): boolean {
  return BigInt(one.hits) * BigInt(other.periodUs) > BigInt(other.hits) * BigInt(one.periodUs);
}

/**
 * The first interval that admitted more than its largest burst and what drains at its largest rate;
 * each interval by itself, in whole numbers without bounds.
 */
function findExcess(decided: readonly Decided[]): string | undefined {
  for (const [from, { atUs: fromUs, version: first }] of decided.entries()) {
    let sum = 0n;
    let burst = 0n;
    let fastest = first;
    for (const { atUs, version, admittedHits } of decided.slice(from)) {
      sum += BigInt(admittedHits);
      if (BigInt(version.burst) > burst) burst = BigInt(version.burst);
      if (isFaster(version, fastest)) fastest = version;
      const drained = (BigInt(atUs - fromUs) * BigInt(fastest.hits)) / BigInt(fastest.periodUs);
      if (sum > burst + drained) return `${sum} of ${burst} + ${drained} in ${atUs - fromUs} us`;
    }
  }
  return undefined;
}

describe("decideRequest() for replicas that hold different versions of a limit", () => {
  it("admits at most the largest burst and what drains at the largest rate", () => {
    let admittedCount = 0;
    const property = fc.property(versionLists, steps, (versions, list) => {
      const decided = play(versions, list);
      expect(findExcess(decided)).toBeUndefined();
      admittedCount += decided.filter(({ admittedHits }) => admittedHits > 0).length;
    });
    fc.assert(property, propertyRuns(200));
    expect(admittedCount).toBeGreaterThan(metCount(1_000));
  });

  it("admits 101 where bursts are 100 and 10, and not 90 more after each ask under the 10", () => {
    const table = new ExpiringTable();
    const versions = [100, 10].map((burst) => testCharge({ hits: 1, periodUs: secondUs, burst }));
    let admitted = 0;
    for (let i = 0; i < 2_000; i += 1) {
      table.nowUs = startUs + i * 500;
      for (const charge of versions) {
        if (!decideRequest([charge], table, table.nowUs).isDenied) admitted += 1;
      }
    }
    expect(admitted).toBe(100);
    // A second, and what 100 charges were rounded by.
    table.nowUs = startUs + secondUs + 200;
    for (const charge of versions.toReversed()) {
      if (!decideRequest([charge], table, table.nowUs).isDenied) admitted += 1;
    }
    expect(admitted).toBe(101);
  });

  it("lets a lasting edit refuse no longer than the bucket took to drain before it", () => {
    const whole = fc.property(rates, bursts, rates, bursts, (oldRate, oldBurst, rate, burst) => {
      const table = new ExpiringTable();
      decideRequest([testCharge({ ...oldRate, burst: oldBurst, cost: oldBurst })], table, startUs);
      const charge = testCharge({ ...rate, burst, cost: burst });
      table.nowUs += Math.ceil((oldBurst * oldRate.periodUs) / oldRate.hits);
      expect(decideRequest([charge], table, table.nowUs).isDenied).toBe(false);
    });
    fc.assert(whole, propertyRuns(200));
  });

  it("never tells to come back too early", () => {
    const property = fc.property(versionLists, fc.nat(20 * secondUs), (versions, gapUs) => {
      const table = new ExpiringTable();
      const [old, next] = versions.map((version) => testCharge({ ...version }));
      if (old === undefined || next === undefined) throw new Error("there are two versions");
      decideRequest([{ ...old, cost: old.burst }], table, startUs);
      table.nowUs += gapUs;
      const [found] = decideRequest([next], table, table.nowUs).results;
      if (found?.isOver !== true) return;
      table.nowUs += retryAfterUs(next, found.bucket, table.nowUs) ?? 0;
      expect(decideRequest([next], table, table.nowUs).isDenied).toBe(false);
    });
    fc.assert(property, propertyRuns(200));
  });
});
