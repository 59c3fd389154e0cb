import { beforeEach, describe, expect, it } from "vitest";
import type { Verdict } from "../../../../src/core/limits/verdict.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import type { DescriptorQuery } from "../../../../src/decide/rate-limit/query.js";
import type { LimitSwitches } from "../../../../src/decide/rate-limit/switches.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { epochUsOf } from "../../../support/calendar-time.js";
import { createTestDecider, decideQuery } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FaultyStore } from "../../../support/faulty-store.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { noSwitches } from "../../../support/switches.js";

/** Half a minute into a minute. */
const startUs = epochUsOf("2024-03-30T22:30:30Z");

const windowed = { kind: "fixed_window" } as const;
const policy = testPolicy([
  { path: ["user"], effect: [testLimit(2, { algorithm: windowed })] },
  {
    path: ["daily"],
    effect: [
      testLimit(1, {
        unit: "day",
        periodUs: 86_400_000_000,
        algorithm: { kind: "fixed_window", timeZone: "Europe/Stockholm" },
      }),
    ],
  },
]);

let clock: FakeClock;
let store: FaultyStore;
let counters: DecisionCounters;
let decider: Decider;

function start(switches: LimitSwitches = noSwitches): void {
  clock = new FakeClock({ epochUs: startUs });
  store = new FaultyStore(new MemoryLimitStore({ clock }), clock);
  counters = new DecisionCounters();
  decider = createTestDecider({
    policies: { current: () => policy },
    store,
    clock,
    counters,
    switches,
  });
}

beforeEach(() => start());

function ask(key: string, fields: Partial<DescriptorQuery> = {}): DescriptorQuery {
  return { entries: [{ key, value: "v" }], hits: 1, isRefund: false, ...fields };
}

async function decide(...descriptors: readonly DescriptorQuery[]): Promise<Verdict> {
  const answer = decideQuery(decider, { domain: "shop", descriptors }, Number.POSITIVE_INFINITY);
  clock.runTurns();
  await settlePromises();
  return answer;
}

async function denials(count: number, key = "user"): Promise<readonly boolean[]> {
  const denied: boolean[] = [];
  for (let i = 0; i < count; i += 1) denied.push((await decide(ask(key))).isDenied);
  return denied;
}

describe("a limit in windows", () => {
  it("lets its hits through once a window and says when the next one begins", async () => {
    expect(await denials(2)).toEqual([false, false]);
    expect((await decide(ask("user"))).statuses).toMatchObject([
      { isOver: true, limitRemaining: 0, durationUntilResetUs: 30_000_000 },
    ]);
    clock.advance(30_000 - 1);
    expect(await denials(1)).toEqual([true]);
    clock.advance(1);
    expect(await denials(3)).toEqual([false, false, true]);
  });

  it("follows the calendar of its time zone, over a change of clocks too", async () => {
    // 23:30:30 on a Saturday there; the Sunday has 23 hours.
    expect(await denials(2, "daily")).toEqual([false, true]);
    clock.advance((29 * 60 + 30) * 1_000);
    expect(await denials(2, "daily")).toEqual([false, true]);
    expect((await decide(ask("daily"))).statuses[0]?.durationUntilResetUs).toBe(23 * 3_600_000_000);
  });

  it("keeps its windows for a query that was prepared in an earlier one", async () => {
    const prepared = decider.prepare({ domain: "shop", descriptors: [ask("user")] });
    const askAgain = async (): Promise<boolean> => {
      const answer = decider.decidePrepared(prepared, 1, Number.POSITIVE_INFINITY);
      clock.runTurns();
      return (await answer).isDenied;
    };
    expect([await askAgain(), await askAgain(), await askAgain()]).toEqual([false, false, true]);
    clock.advance(30_000);
    expect(await askAgain()).toBe(false);
    const minute = { startUs: startUs + 30_000_000, endUs: startUs + 90_000_000 };
    expect(prepared.window).toEqual(minute);
    clock.stepEpoch(-3_600_000_000);
    await askAgain();
    expect(prepared.window?.startUs).toBe(minute.startUs - 3_600_000_000);
  });

  it("is refused from memory, at most until its window ends", async () => {
    await denials(3);
    const batchCount = store.batches.length;
    expect(await denials(2)).toEqual([true, true]);
    expect([store.batches.length, counters.refusedFromMemoryCount]).toEqual([batchCount, 2]);
    clock.advance(29_999.5);
    await denials(1);
    expect(store.batches.length).toBe(batchCount + 1);
    clock.advance(0.5);
    expect(await denials(1)).toEqual([false]);
  });

  it("follows a wall clock that was set back", async () => {
    expect(await denials(3)).toEqual([false, false, true]);
    clock.stepEpoch(-3_600_000_000);
    clock.advance(30_000);
    // The store's own clock goes on from where it was: by that the window has ended.
    expect(await denials(3)).toEqual([false, false, true]);
  });

  it("is the default for limits that requests carry, where the process says so", async () => {
    const override = { hits: 1, unit: "minute" as const, unitMultiplier: 1 };
    const resets = async (): Promise<number | undefined> => {
      const { statuses } = await decide(ask("own", { override }));
      return statuses[0]?.durationUntilResetUs;
    };
    expect(await resets()).toBe(60_000_000);
    start({ ...noSwitches, defaults: { algorithm: "fixed_window", onStoreFailure: "deny" } });
    expect(await resets()).toBe(30_000_000);
    store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    expect((await decide(ask("own", { override }))).isDenied).toBe(true);
    expect(counters.fallbackByMode.deny.get("STORE_UNAVAILABLE")).toBe(1);
  });
});
