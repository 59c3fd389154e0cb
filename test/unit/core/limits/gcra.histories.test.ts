import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import {
  type Bucket,
  bucketTimeToFullUs,
  type Charge,
  levelAt,
  remainingHits,
  retryAfterUs,
  unitsPerHit,
} from "../../../../src/core/limits/bucket.js";
import { decideRequest, type RequestResult } from "../../../../src/core/limits/gcra.js";
import { isSettled, type LimitKey } from "../../../../src/core/limits/limit.js";
import {
  chargeOn,
  costHits,
  gapUs,
  type History,
  type HistoryLimit,
  histories,
  historyLimits,
  historyLimitsMax,
  type Step,
} from "../../../support/gcra-histories.js";
import { assertWithin, GcraModel, units } from "../../../support/gcra-model.js";
import { RecordedTable, type Write } from "../../../support/recorded-table.js";
import { propertyRuns } from "../../../support/seeds.js";

const startUs = 1_800_000_000_000_000;

/** Time stands still here, in the year 2191: microseconds stay whole numbers until 2255. */
const latestUs = 7_000_000_000_000_000;

/** One request of a history as it went. */
interface Event {
  readonly charges: readonly Charge[];
  readonly nowUs: number;
  readonly before: ReadonlyMap<LimitKey, Bucket>;
  readonly writes: readonly Write[];
  readonly table: RecordedTable;
  readonly result: RequestResult;
}

/** The charges that a step means at that moment. */
function chargesOf(
  { charges }: Step,
  limits: readonly HistoryLimit[],
  moment: { readonly table: RecordedTable; readonly nowUs: number },
): readonly Charge[] {
  return charges.map((wish) => {
    const charge = chargeOn(limits, wish.limit);
    const bucket = moment.table.get(charge.key) ?? { level: 0, tUs: moment.nowUs };
    const past = { ...bucket, tUs: Math.min(bucket.tUs, moment.nowUs) };
    const remaining = remainingHits(charge, past, moment.nowUs);
    const cost = costHits(wish.cost, charge.burst, remaining);
    return { ...charge, cost, isRefund: wish.isRefund };
  });
}

function decide(table: RecordedTable, charges: readonly Charge[], nowUs: number): Event {
  const before = new Map(table.buckets);
  const result = decideRequest(charges, table, nowUs);
  return { charges, nowUs, before, writes: table.takeWrites(), table, result };
}

/** Runs a history and hands every request on. `limitsAt` may edit the limits along the way. */
function play(
  { limits, steps }: History,
  see: (event: Event) => void,
  options: {
    readonly limitsAt?: (step: number) => readonly HistoryLimit[];
    /** Added to the time that passed: a clock that steps. */
    readonly clockStepUs?: (step: number) => number;
  } = {},
): void {
  const table = new RecordedTable();
  let nowUs = startUs;
  steps.forEach((step, i) => {
    const current = options.limitsAt?.(i) ?? limits;
    nowUs = Math.min(latestUs, nowUs + gapUs(step.gap, current));
    nowUs += options.clockStepUs?.(i) ?? 0;
    see(decide(table, chargesOf(step, current, { table, nowUs }), nowUs));
  });
}

/** The results and the stored state of a request, against the exact definition. */
function seeModel(model: GcraModel, { charges, nowUs, table, result }: Event): void {
  const answers = result.results.map((found) => found.isOver);
  const wanted = model.decide(charges, nowUs, answers);
  assert.equal(result.isDenied, wanted.isDenied);
  charges.forEach((charge, i) => {
    const found = result.results[i];
    const exact = wanted.results[i];
    if (found === undefined || exact === undefined) throw new Error("a charge has no result");
    assert.equal(found.isOver, exact.isOver);
    assertWithin(units(levelAt(charge, found.bucket, nowUs)), exact);
    model.compareStored(charge, table.get(charge.key), nowUs);
  });
}

/** What a bucket may hold after a charge that met this one, in the law's units. */
function levelMax(charge: Charge, before: Bucket | undefined): number {
  const burst = charge.burst * unitsPerHit;
  return Math.max(isSettled(charge.role) ? 2 * burst : burst, before?.level ?? 0);
}

/** Whole, in bounds, and written only where something was charged or its time in the future. */
function seeWrites({ charges, nowUs, before, writes, result }: Event): void {
  assert.equal(new Set(writes.map((write) => write.key)).size, writes.length);
  for (const { key, bucket, timeToFullUs } of writes) {
    const onKey = charges.filter((charge) => charge.key === key);
    const isCharged = onKey.some((charge) => {
      const isOver = result.results[charges.indexOf(charge)]?.isOver === true;
      const isKept = isSettled(charge.role) || charge.isRefund;
      return charge.cost > 0 && (isKept || (!result.isDenied && !isOver));
    });
    const [charge] = onKey;
    if (charge === undefined) throw new Error("a key was written that nobody asked for");
    assert.equal(isCharged || (before.get(key)?.tUs ?? 0) > nowUs, true);
    if (bucket === undefined) continue;
    assert.equal(Number.isSafeInteger(bucket.level) && bucket.level > 0, true);
    assert.ok(bucket.level <= levelMax(charge, before.get(key)));
    assert.equal(Number.isSafeInteger(bucket.tUs) && bucket.tUs <= nowUs, true);
    assert.equal(timeToFullUs, waitUs(charge, bucket, { nowUs, levelWanted: 0 }));
  }
}

/** What no wait is told longer than: an edit can leave more than drains in it. */
const waitUsMax = 2n ** 50n;

/** Least time from now in which a bucket's level, rounded up, is at most `levelWanted`. */
function waitUs(
  { hits, periodUs }: Charge,
  { level, tUs }: Bucket,
  { nowUs, levelWanted }: { readonly nowUs: number; readonly levelWanted: number },
): number | undefined {
  if (level <= levelWanted) return 0;
  if (hits === 0) return undefined;
  const rate = BigInt(hits) * BigInt(unitsPerHit);
  const product = BigInt(level - levelWanted) * BigInt(periodUs);
  const drainUs = (product + rate - 1n) / rate;
  return Math.max(0, Number(drainUs < waitUsMax ? drainUs : waitUsMax) - (nowUs - tUs));
}

/** Times and counts that a caller is told, by arithmetic without limits. */
function seeAnswers({ charges, nowUs, result }: Event): void {
  charges.forEach((charge, i) => {
    const bucket = result.results[i]?.bucket;
    if (bucket === undefined) throw new Error("a charge has no result");
    const remaining = remainingHits(charge, bucket, nowUs);
    assert.equal(Number.isSafeInteger(remaining) && remaining >= 0, true);
    assert.ok(remaining <= charge.burst);
    const peeked = charge.peekExhausted ? 1 : 0;
    const hits = charge.cost === 0 ? peeked : charge.cost;
    const levelWanted = (charge.burst - hits) * unitsPerHit;
    assert.equal(
      retryAfterUs(charge, bucket, nowUs),
      hits > charge.burst ? undefined : waitUs(charge, bucket, { nowUs, levelWanted }),
    );
    assert.equal(
      bucketTimeToFullUs(charge, bucket, nowUs),
      waitUs(charge, bucket, { nowUs, levelWanted: 0 }),
    );
  });
}

/** Asks again, alone, at the promised time and one microsecond earlier. */
function seeRetry({ charges, nowUs, table, result }: Event): void {
  const [charge] = charges;
  const [found] = result.results;
  if (charge === undefined || charges.length !== 1 || found?.isOver !== true) return;
  const retryUs = retryAfterUs(charge, found.bucket, nowUs);
  const isOverAt = (atUs: number): boolean | undefined =>
    decideRequest([charge], table.copy(), atUs).results[0]?.isOver;
  if (retryUs === undefined) {
    assert.equal(isOverAt(nowUs + 10 ** 15), true);
    return;
  }
  // Told as the longest wait, and by then the table has forgotten it.
  if (retryUs + (nowUs - found.bucket.tUs) >= waitUsMax) return;
  assert.ok(retryUs > 0);
  assert.equal(isOverAt(nowUs + retryUs), false);
  assert.equal(isOverAt(nowUs + retryUs - 1), true);
}

/** Hits that went in at a time, less what came back. */
interface Admitted {
  readonly atUs: number;
  readonly hits: number;
}

/** Throws when an interval of a key's admissions holds more than burst + floor(t * rate) hits. */
function assertPromise(charge: Charge, admitted: readonly Admitted[]): void {
  for (let from = 0; from < admitted.length; from += 1) {
    let sum = 0n;
    const fromUs = admitted[from]?.atUs ?? 0;
    for (const { atUs, hits } of admitted.slice(from)) {
      sum += BigInt(hits);
      const drained = (BigInt(atUs - fromUs) * BigInt(charge.hits)) / BigInt(charge.periodUs);
      if (sum > BigInt(charge.burst) + drained) throw new Error(`${sum} hits in ${atUs - fromUs}`);
    }
  }
}

/** Collects what each key admitted. Debt is no admission: a settle charge that is over. */
class Admissions {
  readonly #byKey = new Map<LimitKey, { readonly charge: Charge; readonly all: Admitted[] }>();

  see({ charges, result }: Event, atUs: number): void {
    charges.forEach((charge, i) => {
      if (result.results[i]?.isOver === true) return;
      if (result.isDenied && !isSettled(charge.role) && !charge.isRefund) return;
      const known = this.#byKey.get(charge.key) ?? { charge, all: [] };
      this.#byKey.set(charge.key, known);
      known.all.push({ atUs, hits: charge.isRefund ? -charge.cost : charge.cost });
    });
  }

  check(): void {
    for (const { charge, all } of this.#byKey.values()) assertPromise(charge, all);
  }
}

const stepsMax = 40;

describe("decideRequest() on random histories", () => {
  it("equals the exact definition but for the stated rounding", () => {
    const property = fc.property(histories(stepsMax), (history) => {
      const model = new GcraModel();
      play(history, (event) => seeModel(model, event));
    });
    fc.assert(property, propertyRuns(200));
  });

  it("writes only what was charged, whole and in bounds", () => {
    const property = fc.property(histories(stepsMax), (history) => play(history, seeWrites));
    fc.assert(property, propertyRuns(200));
  });

  it("tells exact counts and times", () => {
    const property = fc.property(histories(stepsMax), (history) => play(history, seeAnswers));
    fc.assert(property, propertyRuns(200));
  });

  it("admits at the promised time and not a microsecond earlier", () => {
    const property = fc.property(histories(stepsMax), (history) => play(history, seeRetry));
    fc.assert(property, propertyRuns(200));
  });

  it("admits at most burst + floor(t * rate) in any interval", () => {
    const property = fc.property(histories(stepsMax), (history) => {
      const admissions = new Admissions();
      play(history, (event) => admissions.see(event, event.nowUs));
      admissions.check();
    });
    fc.assert(property, propertyRuns(200));
  });

  it("decides alike when buckets are forgotten at their time to full", () => {
    const property = fc.property(histories(stepsMax), (history) => {
      const expiring = new RecordedTable();
      const expiresUs = new Map<LimitKey, number>();
      play(history, ({ charges, nowUs, result }) => {
        for (const [key, atUs] of expiresUs) if (atUs <= nowUs) expiring.buckets.delete(key);
        const event = decide(expiring, charges, nowUs);
        for (const { key, timeToFullUs } of event.writes) {
          if (timeToFullUs === undefined) expiresUs.delete(key);
          else expiresUs.set(key, nowUs + timeToFullUs);
        }
        assert.equal(event.result.isDenied, result.isDenied);
        charges.forEach((charge, i) => {
          const mine = event.result.results[i];
          const other = result.results[i];
          if (mine === undefined || other === undefined) throw new Error("a result is missing");
          assert.equal(mine.isOver, other.isOver);
          assert.equal(levelAt(charge, mine.bucket, nowUs), levelAt(charge, other.bucket, nowUs));
        });
      });
    });
    fc.assert(property, propertyRuns(200));
  });
});

const limitLists = fc.array(historyLimits, { minLength: historyLimitsMax, maxLength: 3 });

describe("decideRequest() while limits are edited and the clock steps", () => {
  it("equals the exact definition through edits of rate, burst and role", () => {
    const edits = fc.array(limitLists, { minLength: 1, maxLength: 4 });
    const property = fc.property(histories(stepsMax), edits, (history, lists) => {
      const model = new GcraModel();
      const limitsAt = (step: number): readonly HistoryLimit[] =>
        lists[Math.floor(step / 5) % lists.length] ?? history.limits;
      const see = (event: Event): void => {
        seeModel(model, event);
        seeWrites(event);
        seeAnswers(event);
        seeRetry(event);
      };
      play(history, see, { limitsAt });
    });
    fc.assert(property, propertyRuns(200));
  });

  it("never lets a step back admit more than true time allows", () => {
    const backs = fc.array(fc.constantFrom(0, 0, 0, -1, -1_000_000, -7_200_000_000), {
      minLength: 7,
      maxLength: 7,
    });
    const property = fc.property(histories(stepsMax), backs, (history, stepsBack) => {
      const model = new GcraModel();
      const admissions = new Admissions();
      let lostUs = 0;
      const clockStepUs = (step: number): number => {
        const back = stepsBack[step % stepsBack.length] ?? 0;
        lostUs -= back;
        return back;
      };
      const see = (event: Event): void => {
        seeModel(model, event);
        seeWrites(event);
        seeRetry(event);
        admissions.see(event, event.nowUs + lostUs);
      };
      play(history, see, { clockStepUs });
      admissions.check();
    });
    fc.assert(property, propertyRuns(200));
  });

  it("bounds what a step back refuses by the time in which a full bucket drains", () => {
    const property = fc.property(
      historyLimits.filter(({ burst, role }) => burst > 0 && !isSettled(role)),
      fc.integer({ min: 1, max: 10 ** 15 }),
      (limit, backUs) => {
        const charge = chargeOn([limit], 0);
        const table = new RecordedTable();
        decideRequest([{ ...charge, cost: charge.burst }], table, startUs);
        const nowUs = startUs - backUs;
        const [asked] = decideRequest([charge], table, nowUs).results;
        const drainUs = Math.ceil((charge.burst * charge.periodUs) / charge.hits) + 1;
        assert.equal(asked?.isOver, true);
        const whole = { ...charge, cost: charge.burst };
        assert.equal(decideRequest([whole], table, nowUs + drainUs).results[0]?.isOver, false);
      },
    );
    fc.assert(property, propertyRuns(200));
  });
});
