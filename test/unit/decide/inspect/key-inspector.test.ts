import { beforeEach, describe, expect, it } from "vitest";
import type { Override } from "../../../../src/core/limits/override.js";
import { noOverrides, OverrideTable } from "../../../../src/core/limits/override-table.js";
import { Explainer } from "../../../../src/decide/inspect/explain.js";
import { KeyInspector } from "../../../../src/decide/inspect/key-inspector.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import type { Policy } from "../../../../src/policy/policy.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider, decideQuery } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { noSwitches } from "../../../support/switches.js";

const policy = testPolicy([
  { path: ["user"], effect: [testLimit(60), testLimit(100, { name: "daily", unit: "day" })] },
  { path: ["free"], effect: { kind: "unlimited" } },
]);

let clock: FakeClock;
let decider: Decider;
let inspector: KeyInspector;
let overrides: OverrideTable;
let current: Policy | undefined;

beforeEach(() => {
  clock = new FakeClock();
  current = policy;
  overrides = noOverrides;
  const store = new MemoryLimitStore({ clock });
  const common = { policies: { current: () => current }, store, clock };
  const shown = { current: () => overrides };
  decider = createTestDecider({ ...common, overrides: shown, counters: new DecisionCounters() });
  const explainer = new Explainer({ switches: noSwitches, digest: (text) => text });
  const onReset = (): void => decider.forgetRefusals();
  const areLimitsCarried = (): boolean => decider.areLimitsCarried;
  const more = { explainer, areLimitsCarried, onReset };
  inspector = new KeyInspector({ ...common, overrides: shown, ...more });
});

const ann = { domain: "shop", entries: [{ key: "user", value: "ann" }] };

async function take(count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    const descriptors = [{ entries: ann.entries, hits: 1, isRefund: false }];
    const asked = decideQuery(decider, { domain: "shop", descriptors }, Number.POSITIVE_INFINITY);
    clock.runTurns();
    await settlePromises();
    await asked;
  }
}

async function states(limitName?: string) {
  const selector = limitName === undefined ? ann : { ...ann, limitName };
  const found = await inspector.get(selector);
  if (found.kind !== "found") throw new Error(found.kind);
  return found.value;
}

describe("KeyInspector", () => {
  it("shows each bucket of a key as it is, and charges nothing", async () => {
    await take(40);
    const expected = [
      { ruleLabel: "user", usedHits: 40, remainingHits: 20, retryAfterUs: 0 },
      { ruleLabel: "user", usedHits: 40, remainingHits: 60, retryAfterUs: 0 },
    ];
    expect(await states()).toMatchObject(expected);
    expect(await states()).toMatchObject(expected);
    expect(await states("daily")).toMatchObject([{ limit: { hits: 100 }, usedHits: 40 }]);
    clock.advance(1_000);
    expect((await states())[0]).toMatchObject({ usedHits: 39, fullAfterUs: 39_000_000 });
  });

  it("shows what an override makes of it", async () => {
    await take(40);
    const frozen: Override = {
      ...ann,
      id: "one",
      isPrefix: false,
      effect: { kind: "frozen" },
      reason: "a test",
      author: "op",
      createdEpochMs: 0,
    };
    overrides = new OverrideTable([frozen], 1, 0);
    const [state] = await states();
    expect(state).toMatchObject({ limit: { hits: 0 }, override: { id: "one" }, remainingHits: 0 });
    expect(state?.retryAfterUs).toBeUndefined();
  });

  it("empties all buckets of a key, or the one that is named", async () => {
    await take(40);
    expect(await inspector.reset({ ...ann, limitName: "daily" })).toEqual({
      kind: "found",
      value: 1,
    });
    expect((await states()).map(({ usedHits }) => usedHits)).toEqual([40, 0]);
    await take(2);
    expect(await inspector.reset(ann)).toEqual({ kind: "found", value: 2 });
    expect((await states()).map(({ usedHits }) => usedHits)).toEqual([0, 0]);
    expect(await inspector.reset(ann)).toEqual({ kind: "found", value: 0 });
  });

  it("says what is not there", async () => {
    expect(await inspector.get({ ...ann, domain: "shopp" })).toEqual({ kind: "domainUnknown" });
    const free = { domain: "shop", entries: [{ key: "free", value: "ann" }] };
    expect(await inspector.get(free)).toEqual({ kind: "unmatched" });
    const other = { domain: "shop", entries: [{ key: "usr", value: "ann" }] };
    expect(await inspector.reset(other)).toEqual({ kind: "unmatched" });
    const named = { ...ann, limitName: "dayly" };
    expect(await inspector.get(named)).toEqual({ kind: "limitUnknown", names: ["daily"] });
    current = undefined;
    await expect(inspector.get(ann)).rejects.toMatchObject({ code: "POLICY_MISSING" });
  });
});
