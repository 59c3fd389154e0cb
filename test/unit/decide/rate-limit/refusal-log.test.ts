import { describe, expect, it } from "vitest";
import { defaultDisclosure } from "../../../../src/core/limits/reported-rule.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import {
  type LoggedRefusal,
  loggedRefusalsPerSecondMax,
  RefusalLog,
} from "../../../../src/decide/rate-limit/refusal-log.js";
import { createTestDecider, decideQuery } from "../../../support/decider.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { type TestRule, testLimit, testPolicy } from "../../../support/policies.js";

/** A decider that tells, asked for one key at a time. */
function telling(rules: readonly TestRule[], perSecondMax: number) {
  const clock = new FakeClock();
  const reported: LoggedRefusal[] = [];
  const refusalLog = new RefusalLog({ perSecondMax, onRefused: (one) => reported.push(one) });
  const policy = testPolicy(rules);
  const policies = { current: () => policy };
  const counters = new DecisionCounters();
  const decider = createTestDecider({ clock, counters, policies, refusalLog });
  const ask = async (key: string, value = "secret"): Promise<void> => {
    const query = {
      domain: "shop",
      descriptors: [{ entries: [{ key, value }], hits: 1, isRefund: false }],
    };
    const verdict = decideQuery(decider, query, Number.POSITIVE_INFINITY);
    clock.runTurns();
    await verdict;
  };
  return { clock, reported, refusalLog, ask };
}

const full: TestRule = { path: ["full"], effect: [testLimit(0, { name: "none" })] };

describe("RefusalLog", () => {
  it("tells a rule's refusals so often in a second, and how many each stands for", async () => {
    const { clock, reported, refusalLog, ask } = telling([full], 2);
    for (let i = 0; i < 10; i += 1) await ask("full");
    const named = { kind: "rule", domain: "shop", rule: "full", limit: "none" };
    expect(reported).toEqual([
      { ...named, refusedCount: 1 },
      { ...named, refusedCount: 1 },
    ]);
    expect(refusalLog.unloggedCount).toBe(8);
    clock.advance(1_000);
    await ask("full");
    expect(reported.at(-1)).toEqual({ ...named, refusedCount: 9 });
    expect(refusalLog.unloggedCount).toBe(8);
  });

  it("says nothing that a caller has said", async () => {
    const { reported, ask } = telling([full], 1);
    await ask("full", "secret-value");
    expect(JSON.stringify(reported)).not.toContain("secret");
  });

  it("says nothing of what passes, of shadow limits, and of rules that are not told", async () => {
    const rules: readonly TestRule[] = [
      { path: ["open"], effect: [testLimit(5)] },
      { path: ["shadow"], effect: [testLimit(0, { role: "shadow" })] },
      { ...full, path: ["quiet"], fields: { disclosure: { ...defaultDisclosure, log: false } } },
    ];
    const { reported, refusalLog, ask } = telling(rules, 1);
    for (const key of ["open", "shadow", "quiet"]) await ask(key);
    expect([reported, refusalLog.unloggedCount]).toEqual([[], 0]);
  });

  it("tells no more of all rules together than its bound", async () => {
    const keys = Array.from({ length: loggedRefusalsPerSecondMax + 5 }, (_, i) => `k${i}`);
    const { clock, reported, refusalLog, ask } = telling(
      keys.map((key) => ({ ...full, path: [key] })),
      1,
    );
    for (const key of keys) await ask(key);
    expect(reported).toHaveLength(loggedRefusalsPerSecondMax);
    expect(refusalLog.unloggedCount).toBe(5);
    clock.advance(1_000);
    await ask(keys.at(-1) ?? "");
    expect(reported.at(-1)).toMatchObject({ rule: keys.at(-1), refusedCount: 2 });
  });

  it("tells the causes of services apart", () => {
    const reported: LoggedRefusal[] = [];
    const log = new RefusalLog({ perSecondMax: 1, onRefused: (one) => reported.push(one) });
    const gate = { service: "orders", cause: "gate" };
    for (const [cause, nowMs] of [
      [gate, 0],
      [{ service: "orders", cause: "load" }, 1],
      [gate, 999],
      [gate, 1_000],
    ] as const) {
      log.noteCause(cause, nowMs);
    }
    expect(reported).toEqual([
      { kind: "service", ...gate, refusedCount: 1 },
      { kind: "service", service: "orders", cause: "load", refusedCount: 1 },
      { kind: "service", ...gate, refusedCount: 2 },
    ]);
    expect(log.unloggedCount).toBe(1);
  });
});
