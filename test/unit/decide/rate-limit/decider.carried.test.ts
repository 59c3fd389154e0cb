import { beforeEach, describe, expect, it } from "vitest";
import type { LimitUnit } from "../../../../src/core/limits/limit.js";
import type { Verdict } from "../../../../src/core/limits/verdict.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import type { DescriptorQuery } from "../../../../src/decide/rate-limit/query.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider, decideQuery } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { testPolicy } from "../../../support/policies.js";

let clock: FakeClock;
let store: MemoryLimitStore;
let decider: Decider;

beforeEach(() => {
  clock = new FakeClock();
  store = new MemoryLimitStore({ clock });
  decider = createDecider();
});

function createDecider(): Decider {
  const policy = testPolicy([]);
  const policies = { current: () => policy };
  return createTestDecider({ policies, store, clock, counters: new DecisionCounters() });
}

function carrying(hits: number, fields: Partial<DescriptorQuery & { unit: LimitUnit }> = {}) {
  const { unit = "day", ...rest } = fields;
  const entries = [{ key: "user", value: "ann" }];
  const override = { hits, unit, unitMultiplier: 1 };
  return { entries, hits: 1, isRefund: false, override, ...rest };
}

async function ask(...descriptors: readonly DescriptorQuery[]): Promise<Verdict> {
  const promise = decideQuery(decider, { domain: "shop", descriptors }, Number.POSITIVE_INFINITY);
  clock.runTurns();
  await settlePromises();
  return promise;
}

/** How many of so many asks under a carried limit a day pass, one after the other. */
async function passing(hits: number, count: number): Promise<number> {
  let passedCount = 0;
  for (let i = 0; i < count; i += 1) {
    if (!(await ask(carrying(hits))).isDenied) passedCount += 1;
  }
  return passedCount;
}

const hourMs = 3_600_000;

describe("Decider with carried limits", () => {
  it("does not refuse a larger limit by what it remembers of a smaller one", async () => {
    expect(await passing(2, 3)).toBe(2);
    expect((await ask(carrying(9))).statuses).toMatchObject([{ isOver: false, limitRemaining: 6 }]);
    expect(await passing(2, 1)).toBe(0);
    expect(await passing(9, 7)).toBe(6);
  });

  it("lets a limit above 0 follow one of 0", async () => {
    expect(await passing(0, 2)).toBe(0);
    expect(await passing(9, 10)).toBe(9);
    expect(await passing(0, 1)).toBe(0);
  });

  it("refuses many hits and lets fewer of them pass", async () => {
    expect((await ask(carrying(5, { hits: 3 }))).isDenied).toBe(false);
    expect((await ask(carrying(5, { hits: 3 }))).isDenied).toBe(true);
    expect((await ask(carrying(5, { hits: 2 }))).isDenied).toBe(false);
    expect((await ask(carrying(9, { hits: 3 }))).isDenied).toBe(false);
  });

  it("keeps what 2 a day counted when 1,000,000 a day is asked in between", async () => {
    expect(await passing(2, 3)).toBe(2);
    await clock.advanceAsync(5_000);
    expect(await passing(1_000_000, 1)).toBe(1);
    await clock.advanceAsync(5_000);
    expect(await passing(2, 3)).toBe(0);
  });

  it("raises a limit at once, and counts what was used", async () => {
    expect(await passing(2, 3)).toBe(2);
    expect(await passing(9, 9)).toBe(7);
  });

  it("counts under a lower limit what was used, and no more than it allows", async () => {
    expect(await passing(9, 6)).toBe(6);
    expect(await passing(2, 1)).toBe(0);
    await clock.advanceAsync(11 * hourMs);
    expect(await passing(2, 1)).toBe(0);
    await clock.advanceAsync(hourMs);
    expect(await passing(2, 2)).toBe(1);
  });

  it("raises a limit on a replica that has not seen the lower one", async () => {
    expect(await passing(2, 3)).toBe(2);
    decider = createDecider();
    expect(await passing(9, 9)).toBe(7);
  });

  it("keeps the promise of each of two limits that alternate for ten days", async () => {
    const passed = { small: 0, large: 0 };
    for (let hour = 0; hour < 240; hour += 1) {
      passed.small += await passing(2, 3);
      passed.large += await passing(24, 3);
      await clock.advanceAsync(hourMs);
    }
    // The burst, of which the larger begins with two used, and what ten days but an hour bring.
    expect(passed).toEqual({ small: 2 + 19, large: 22 + 239 });
  });

  it("decides two limits that one request carries for one descriptor each by its own", async () => {
    const both = [carrying(24), carrying(2)] as const;
    let passedCount = 0;
    for (let hour = 0; hour < 48; hour += 1) {
      if (!(await ask(...both)).isDenied) passedCount += 1;
      await clock.advanceAsync(hourMs);
    }
    expect(passedCount).toBe(2 + 3);
  });

  it("gives back what a refund gives, also to the limit that is carried next", async () => {
    expect(await passing(2, 3)).toBe(2);
    await ask(carrying(2, { isRefund: true }));
    expect(await passing(2, 2)).toBe(1);
    await ask(carrying(2, { isRefund: true }));
    expect(await passing(9, 9)).toBe(8);
  });

  it("keeps few buckets for a descriptor that carries another limit each time", async () => {
    for (let hits = 1_000; hits < 3_000; hits += 1) await ask(carrying(hits));
    expect(store.keyCount).toBeLessThanOrEqual(10);
    // And counts on: what was used of the others is used of the next one.
    const { statuses } = await ask(carrying(3_000));
    expect(statuses[0]?.limitRemaining).toBeLessThan(1_000);
  });
});
