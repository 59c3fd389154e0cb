import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Verdict } from "../../../../src/core/limits/verdict.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { RateLimitQuery } from "../../../../src/decide/rate-limit/query.js";
import { PolicySimulator } from "../../../../src/decide/shadow/policy-simulator.js";
import type { SimulatedPart } from "../../../../src/decide/shadow/simulated-parts.js";
import { requestChargesMax } from "../../../../src/store/limit-store.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider } from "../../../support/decider.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { propertyRuns } from "../../../support/seeds.js";
import { noSwitches } from "../../../support/switches.js";

const policy = testPolicy([
  { path: ["user"], effect: [testLimit(600, { burst: 5 })] },
  { path: ["plan=free"], effect: [testLimit(120, { burst: 3 })] },
]);

function queryOf(user: string, plan?: string, hits = 1): RateLimitQuery {
  const entries = [{ key: "user", value: user }];
  const more = plan === undefined ? [] : [{ entries: [{ key: "plan", value: plan }] }];
  const descriptors = [{ entries }, ...more].map((one) => ({ ...one, hits, isRefund: false }));
  return { domain: "shop", descriptors };
}

function trialOf(keysMax?: number): PolicySimulator {
  const more = keysMax === undefined ? {} : { keysMax };
  return new PolicySimulator({ policy, switches: noSwitches, digest: (text) => text, ...more });
}

/**
 * What a decider that may have refused from memory tells, and a trial has to tell as well: of
 * descriptors of which memory knows nothing it tells nothing, and of a rule's limits those alone
 * that it knows to be over.
 */
function known({ isDenied, statuses }: Verdict, decided: Verdict) {
  if (!isDenied) return { isDenied, statuses };
  const reported = statuses.map(
    ({ isOver }, i) => decided.statuses[i]?.isOver !== undefined && isOver,
  );
  return { isDenied, reported };
}

/** Refused, and refused again with another limit that nobody has asked for since. */
const remembered = [
  { user: "bob", plan: "partner", hits: 2, afterMs: 0 },
  { user: "ann", plan: "free", hits: 3, afterMs: 1 },
  { user: "ann", plan: "free", hits: 1, afterMs: 1 },
  { user: "bob", plan: "free", hits: 1, afterMs: 1 },
] as const;

describe("PolicySimulator", () => {
  it("decides what a decider decides, on random histories", async () => {
    const call = fc.record({
      user: fc.constantFrom("ann", "bob"),
      plan: fc.constantFrom("free", "partner", undefined),
      hits: fc.integer({ min: 0, max: 4 }),
      afterMs: fc.integer({ min: 0, max: 700 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 30 }), async (calls) => {
        const clock = new FakeClock();
        const store = new MemoryLimitStore({ clock });
        const counters = new DecisionCounters();
        const policies = { current: () => policy };
        const decider = createTestDecider({ clock, store, policies, counters });
        const trial = trialOf();
        for (const { user, plan, hits, afterMs } of calls) {
          clock.advance(afterMs);
          const query = queryOf(user, plan, hits);
          const prepared = decider.prepare(query, false);
          const asked = decider.decidePrepared(prepared, hits, Number.POSITIVE_INFINITY);
          clock.runTurns();
          const nowUs = clock.epochUs();
          const { verdict } = trial.ask(trial.prepare(query, nowUs), hits, nowUs);
          const decided = await asked;
          expect(known(verdict, decided)).toEqual(known(decided, decided));
        }
      }),
      { ...propertyRuns(50), examples: [[[...remembered]]] },
    );
  });

  it("decides parts that were matched alone as a query of all of them", () => {
    const limits = [testLimit(60, { burst: 3, name: "usual" }), testLimit(6, { burst: 4 })];
    const windows = testLimit(5, { algorithm: { kind: "fixed_window" } });
    const trialPolicy = testPolicy([
      { path: ["user"], effect: limits },
      { path: ["plan=free"], effect: [testLimit(120, { burst: 3 })] },
      { path: ["plan=new"], effect: [windows], fields: { replaces: ["usual"] } },
      { path: ["plan=none"], effect: { kind: "none" }, fields: { replaces: ["usual"] } },
      { path: ["plan=late"], effect: [testLimit(2, { role: "settle" })] },
      { path: ["plan=all"], effect: { kind: "unlimited" } },
      { path: ["plan=trial"], effect: [testLimit(1, { role: "shadow" })] },
    ]);
    const makeTrial = () =>
      new PolicySimulator({ policy: trialPolicy, switches: noSwitches, digest: (text) => text });
    const plans = ["free", "new", "none", "late", "all", "trial", "unknown"];
    const entry = fc.oneof(
      fc.constantFrom("ann", "bob").map((value) => ({ key: "user", value })),
      fc.constantFrom(...plans).map((value) => ({ key: "plan", value })),
    );
    const descriptor = fc.record({
      entries: fc.tuple(entry),
      hits: fc.constantFrom(1, 1, 1, 0, 2),
      isRefund: fc.constantFrom(false, false, true),
    });
    const call = fc.record({
      descriptors: fc.array(descriptor, { minLength: 1, maxLength: 4 }),
      afterMs: fc.constantFrom(0, 100, 5_000, 70_000, -2_000),
    });
    fc.assert(
      fc.property(fc.array(call, { maxLength: 40 }), (calls) => {
        const [whole, parted] = [makeTrial(), makeTrial()];
        const parts = new Map<string, SimulatedPart>();
        let nowUs = 1_767_600_000_000_000;
        for (const { descriptors, afterMs } of calls) {
          nowUs += afterMs * 1_000;
          const prepared = whole.prepare({ domain: "shop", descriptors }, nowUs);
          const hits = descriptors.map((one) => one.hits);
          const { verdict } = whole.ask(prepared, hits, nowUs);
          const asked = descriptors.map((one) => {
            const known = parts.get(JSON.stringify(one));
            const part = known ?? parted.preparePart("shop", one, nowUs);
            parts.set(JSON.stringify(one), part);
            return part;
          });
          expect(parted.askParts(asked, nowUs)).toEqual({
            isDenied: verdict.isDenied,
            parts: prepared.descriptors.map(({ kind }, i) => {
              if (kind !== "limited") return "unasked";
              return verdict.statuses[i]?.isOver === true ? "over" : "within";
            }),
          });
        }
      }),
      propertyRuns(100),
    );
  });

  it("gives a part its bucket back after others had its place", () => {
    const step = fc.record({
      users: fc.uniqueArray(fc.nat(29), { minLength: 1, maxLength: 4 }),
      // Either all has drained, or nothing.
      afterMs: fc.constantFrom(0, 70_000, 70_000, 70_000),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const [roomy, tight] = [trialOf(), trialOf(12)];
        const parts = new Map<number, SimulatedPart>();
        let nowUs = 1_767_600_000_000_000;
        let heldCount = 0;
        for (const { users, afterMs } of steps) {
          // So few are held at a time that there is always room.
          heldCount = afterMs === 0 ? heldCount + users.length : users.length;
          nowUs += (heldCount > 8 ? 70_000 : afterMs) * 1_000;
          if (heldCount > 8) heldCount = users.length;
          const descriptors = users.map((user) => ({
            entries: [{ key: "user", value: `user-${user}` }],
            hits: 3,
            isRefund: false,
          }));
          const query = { domain: "shop", descriptors };
          const hits = descriptors.map((one) => one.hits);
          const { verdict } = roomy.ask(roomy.prepare(query, nowUs), hits, nowUs);
          const asked = users.map((user, i) => {
            const descriptor = descriptors[i];
            if (descriptor === undefined) throw new Error("there is one for each user");
            const part = parts.get(user) ?? tight.preparePart("shop", descriptor, nowUs);
            parts.set(user, part);
            return part;
          });
          expect(tight.askParts(asked, nowUs).isDenied).toBe(verdict.isDenied);
        }
      }),
      propertyRuns(200),
    );
  });

  it("refuses parts that meet more limits than a call may", () => {
    const trial = trialOf();
    const part = trial.preparePart(
      "shop",
      { entries: [{ key: "user", value: "ann" }], hits: 1, isRefund: false },
      0,
    );
    const parts = Array.from({ length: requestChargesMax }, () => part);
    expect(trial.askParts(parts, 0).parts).toHaveLength(requestChargesMax);
    expect(() => trial.askParts([...parts, part], 0)).toThrowError(
      expect.objectContaining({ code: "REQUEST_INVALID" }),
    );
  });

  it("has room for so many keys that hold something, and no more", () => {
    const trial = trialOf(10);
    const ask = (user: string, nowUs: number): boolean => {
      const prepared = trial.prepare(queryOf(user), nowUs);
      return trial.ask(prepared, 1, nowUs).verdict.isDenied;
    };
    for (let i = 0; i < 10; i += 1) expect(ask(`user-${i}`, 1_000_000)).toBe(false);
    expect(() => ask("one-more", 1_000_000)).toThrowError(
      expect.objectContaining({ code: "STORE_FULL" }),
    );
    expect(ask("one-more", 60_000_000)).toBe(false);
  });

  it("shows what a key holds", () => {
    const trial = trialOf();
    const prepared = trial.prepare(queryOf("ann"), 0);
    const key = prepared.charges[0]?.key;
    if (key === undefined) throw new Error("there is a limit");
    expect(trial.bucketOf(key, 0)).toBeUndefined();
    trial.ask(prepared, 2, 0);
    expect(trial.bucketOf(key, 0)?.level).toBe(2 * 1_048_576);
  });
});
