import { beforeEach, describe, expect, it } from "vitest";
import type { TopUp } from "../../../../src/core/budgets/top-up.js";
import type { SharedRecords } from "../../../../src/fleet/records/shared-records.js";
import { TopUpRegistry } from "../../../../src/fleet/records/top-up-registry.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { memoryRecords } from "../../../support/memory-records.js";

let clock: FakeClock;
let records: SharedRecords;
let registry: TopUpRegistry;

beforeEach(() => {
  clock = new FakeClock();
  records = memoryRecords(clock);
  registry = new TopUpRegistry({ records, clock });
});

function nowMs(): number {
  return clock.epochUs() / 1_000;
}

async function add(id: string, fields: Partial<TopUp> = {}): Promise<void> {
  const topUp: TopUp = {
    id,
    budget: "team-month",
    values: ["research"],
    amount: 100,
    untilMs: nowMs() + 60_000,
    reason: "a test",
    actor: "ann",
    ...fields,
  };
  await registry.change(id, topUp, { expectedVersion: 0, audit: { action: "TopUpBudget" } });
}

describe("TopUpRegistry", () => {
  it("adds up the top-ups of an account", async () => {
    await add("a");
    await add("b", { amount: 20 });
    await add("c", { values: ["*"], amount: 3 });
    await add("d", { budget: "other", amount: 1_000 });
    expect(registry.topUpOf("team-month", ["research"], nowMs())).toBe(123);
    expect(registry.topUpOf("team-month", ["sales"], nowMs())).toBe(3);
    expect(registry.topUpOf("team-month", [], nowMs())).toBe(0);
    expect(registry.list().map(({ topUp }) => topUp.id)).toEqual(["a", "b", "c", "d"]);
    const [entry] = await records.audit(Number.POSITIVE_INFINITY, 1);
    expect(entry?.value).toEqual({ action: "TopUpBudget" });
  });

  it("ends a top-up when it expires, and removes its record a minute later", async () => {
    const { timerCount } = clock;
    await add("a");
    await clock.advanceAsync(60_000);
    expect(registry.topUpOf("team-month", ["research"], nowMs())).toBe(0);
    expect(registry.list()).toEqual([]);
    expect(records.list("topUp").size).toBe(1);
    await clock.advanceAsync(60_000);
    await settlePromises();
    expect(records.list("topUp").size).toBe(0);
    expect(clock.timerCount).toBe(timerCount);
  });

  it("takes one away", async () => {
    await add("a");
    const version = registry.list()[0]?.version ?? 0;
    const outcome = await registry.change("a", undefined, { expectedVersion: version, audit: {} });
    expect(outcome.kind).toBe("changed");
    expect(registry.topUpOf("team-month", ["research"], nowMs())).toBe(0);
  });

  it("skips records that it cannot read", async () => {
    const record = { kind: "topUp", expectedVersion: 0, audit: undefined } as const;
    const value = { budget: "b", values: [], amount: 1, untilMs: 1, reason: "", actor: "" };
    for (const [i, wrong] of [
      { amount: 0 },
      { amount: 1.5 },
      { amount: 2 ** 53 },
      { values: [1] },
      { values: "research" },
      { untilMs: "never" },
      { budget: 7 },
    ].entries()) {
      await records.change({ ...record, id: `w${i}`, value: { ...value, ...wrong } });
    }
    expect(registry.unreadableCount).toBe(7);
    expect(registry.list()).toEqual([]);
  });
});
