import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Charge, remainingHits, retryAfterUs } from "../../../../src/core/limits/bucket.js";
import { decideRepeated, decideRequest } from "../../../../src/core/limits/gcra.js";
import { epochWindows } from "../../../../src/core/limits/window.js";
import { testCharge } from "../../../support/charges.js";
import { RecordedTable } from "../../../support/recorded-table.js";
import { propertyRuns } from "../../../support/seeds.js";

const minuteUs = 60_000_000;

/** A limit of `burst` a minute by windows of the epoch, asked by a clock of its own. */
function charge(nowUs: number, fields: Partial<Charge> = {}): Charge {
  const windows = epochWindows(minuteUs, nowUs);
  return testCharge({ hits: 5, burst: 5, periodUs: minuteUs, windows, ...fields });
}

/** What the definition keeps: hits of a window, forgotten when it ends. */
class Counter {
  #window = -1;
  #hits = 0;

  ask(nowUs: number, { cost, role, isRefund, burst }: Charge): boolean {
    const window = Math.floor(nowUs / minuteUs);
    if (window !== this.#window) this.#hits = 0;
    this.#window = window;
    if (isRefund) {
      this.#hits = Math.max(0, this.#hits - cost);
      return false;
    }
    const isOver = cost === 0 ? this.#hits > burst : this.#hits + cost > burst;
    const taken = Math.max(this.#hits, Math.min(this.#hits + cost, 2 * burst));
    if (role === "settle") this.#hits = taken;
    else if (!isOver) this.#hits += cost;
    return isOver;
  }

  get hits(): number {
    return this.#hits;
  }
}

describe("a limit in windows", () => {
  const steps = fc.array(
    fc.record({
      gapUs: fc.oneof(fc.constantFrom(0, 1, minuteUs, minuteUs - 1), fc.nat(minuteUs)),
      cost: fc.integer({ min: 0, max: 6 }),
      role: fc.constantFrom(
        "enforce" as const,
        "enforce" as const,
        "shadow" as const,
        "settle" as const,
      ),
      isRefund: fc.constantFrom(false, false, false, true),
    }),
    { maxLength: 40 },
  );

  it("counts the hits of a window and forgets them when it ends", () => {
    fc.assert(
      fc.property(steps, (asked) => {
        const table = new RecordedTable();
        const counter = new Counter();
        let nowUs = 1_000 * minuteUs + 17;
        for (const { gapUs, ...fields } of asked) {
          nowUs += gapUs;
          const one = charge(nowUs, fields);
          const [result] = decideRequest([one], table, nowUs).results;
          expect(result?.isOver).toBe(counter.ask(nowUs, one));
          if (result === undefined || fields.role === "settle") continue;
          const left = Math.max(0, 5 - counter.hits);
          if (!result.isOver) expect(remainingHits(one, result.bucket, nowUs)).toBe(left);
        }
      }),
      propertyRuns(100),
    );
  });

  it("decides a plain request alike where it is asked once, and by windows only then", () => {
    const table = new RecordedTable();
    const nowUs = 3 * minuteUs;
    const once = { charges: [charge(nowUs)], multiplicity: 1 };
    const granted = Array.from(
      { length: 6 },
      () => decideRepeated(once, table, nowUs).grantedCount,
    );
    expect(granted).toEqual([1, 1, 1, 1, 1, 0]);
  });

  it("lets a caller wait for the end of the window, and no longer", () => {
    const table = new RecordedTable();
    const startUs = 10 * minuteUs;
    decideRequest([charge(startUs, { cost: 5 })], table, startUs + 1);
    const laterUs = startUs + 20_000_000;
    const [refused] = decideRequest([charge(laterUs)], table, laterUs).results;
    const waitUs = refused && retryAfterUs(charge(laterUs), refused.bucket, laterUs);
    expect(waitUs).toBe(minuteUs - 20_000_000);
    const nextUs = laterUs + (waitUs ?? 0);
    expect(decideRequest([charge(nextUs - 1)], table, nextUs - 1).isDenied).toBe(true);
    expect(decideRequest([charge(nextUs)], table, nextUs).isDenied).toBe(false);
  });

  it("keeps a bucket until its window ends", () => {
    const table = new RecordedTable();
    const nowUs = 10 * minuteUs + 1_000;
    decideRequest([charge(nowUs)], table, nowUs);
    expect(table.takeWrites()).toMatchObject([{ timeToFullUs: minuteUs - 1_000 }]);
  });

  it("never admits more than the burst in a window, whatever the askers' clocks say", () => {
    const skews = fc.constantFrom(-2.5 * minuteUs, -minuteUs, -1_000, 0, 1_000, 0.9 * minuteUs);
    const asks = fc.array(fc.record({ gapUs: fc.nat(minuteUs / 4), skewUs: skews }), {
      maxLength: 80,
    });
    fc.assert(
      fc.property(asks, (asked) => {
        const table = new RecordedTable();
        const admitted = new Map<number, number>();
        let nowUs = 1_000 * minuteUs;
        for (const { gapUs, skewUs } of asked) {
          nowUs += gapUs;
          if (decideRequest([charge(nowUs + skewUs)], table, nowUs).isDenied) continue;
          const window = Math.floor(nowUs / minuteUs);
          admitted.set(window, (admitted.get(window) ?? 0) + 1);
        }
        for (const hits of admitted.values()) expect(hits).toBeLessThanOrEqual(5);
      }),
      propertyRuns(100),
    );
  });
});
