import { describe, expect, it } from "vitest";
import type { DescriptorEntry } from "../../../../src/core/limits/key.js";
import type { Verdict } from "../../../../src/core/limits/verdict.js";
import { DecisionCounters, detailedSeriesMax } from "../../../../src/decide/rate-limit/counters.js";
import { metricLabelLengthMax } from "../../../../src/decide/rate-limit/prepared-query.js";
import type { DescriptorQuery } from "../../../../src/decide/rate-limit/query.js";
import type { LimitSwitches } from "../../../../src/decide/rate-limit/switches.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider, decideQuery } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { type TestRule, testLimit, testPolicy } from "../../../support/policies.js";
import { noSwitches } from "../../../support/switches.js";

/** A decider over rules of the domain "shop", asked with descriptors like `a=1,b=2`. */
function deciderFor(rules: readonly TestRule[], switches: Partial<LimitSwitches> = {}) {
  const clock = new FakeClock();
  const counters = new DecisionCounters();
  const policies = { value: testPolicy(rules) };
  const store = new MemoryLimitStore({ clock });
  const decider = createTestDecider({
    policies: { current: () => policies.value },
    store,
    clock,
    counters,
    switches: { ...noSwitches, ...switches },
  });
  const decide = async (...asked: readonly (string | DescriptorQuery)[]): Promise<Verdict> => {
    const descriptors = asked.map((one) => (typeof one === "string" ? descriptor(one) : one));
    const answer = decideQuery(decider, { domain: "shop", descriptors }, Number.POSITIVE_INFINITY);
    clock.runTurns();
    await settlePromises();
    return answer;
  };
  const hits = (index: number) => counters.forPolicy(policies.value)[index]?.hits;
  return { decide, decider, counters, hits, store, policies, clock };
}

function descriptor(text: string, fields: Partial<DescriptorQuery> = {}): DescriptorQuery {
  const entries = text.split(",").map((entry): DescriptorEntry => {
    const [key = "", value = ""] = entry.split("=");
    return { key, value };
  });
  return { entries, hits: 1, isRefund: false, ...fields };
}

const one = (name: string) => testLimit(1, { name });

describe("replaces", () => {
  const rules: readonly TestRule[] = [
    { path: ["user"], effect: [one("base"), one("own")] },
    { path: ["plan=gold"], effect: [testLimit(5)], fields: { replaces: ["base", "own"] } },
    { path: ["trial"], effect: [testLimit(9)], fields: { replaces: ["base"] } },
    { path: ["guest"], effect: { kind: "unlimited", name: "base" } },
  ];

  it("leaves out the limits it names, in whatever order the descriptors come", async () => {
    for (const order of [
      ["user=a", "plan=gold"],
      ["plan=gold", "user=b"],
    ]) {
      const { decide, store } = deciderFor(rules);
      const verdicts = [await decide(...order), await decide(...order)];
      expect(verdicts.map(({ isDenied }) => isDenied)).toEqual([false, false]);
      const user = order.findIndex((text) => text.startsWith("user"));
      expect(verdicts[1]?.statuses[user]).toEqual({ isOver: false });
      expect(store.keyCount).toBe(1);
    }
  });

  it("keeps the rule's other limits, and all of them where the other rule is not met", async () => {
    const { decide } = deciderFor(rules);
    expect((await decide("user=a", "trial=x")).isDenied).toBe(false);
    const second = await decide("user=a", "trial=x");
    expect(second).toMatchObject({
      isDenied: true,
      statuses: [{ isOver: true, currentLimit: { name: "own" } }, { isOver: false }],
    });
    const alone = await decide("user=b");
    expect(alone.statuses).toMatchObject([{ currentLimit: { name: "base" } }]);
  });

  it("never leaves out an unlimited rule, and counts nothing for what it left out", async () => {
    const { decide, hits, counters } = deciderFor(rules);
    const { statuses } = await decide("guest=a", "user=a", "plan=gold");
    expect(statuses[0]).toMatchObject({ limitRemaining: 4_294_967_295 });
    expect([hits(0)?.total, hits(1)?.total, hits(3)?.total]).toEqual([0, 1, 1]);
    expect(counters.unmatchedDescriptorCount).toBe(0);
  });
});

describe("shared buckets", () => {
  it("counts all values that match a pattern together, and other entries apart", async () => {
    const { decide } = deciderFor([
      {
        path: ["path=/files/*", "user"],
        effect: [testLimit(1)],
        fields: { sharePatterns: ["/files/*", undefined] },
      },
    ]);
    expect((await decide("path=/files/a,user=ann")).isDenied).toBe(false);
    expect((await decide("path=/files/b,user=ann")).isDenied).toBe(true);
    expect((await decide("path=/files/b,user=bob")).isDenied).toBe(false);
  });
});

describe("switches", () => {
  const rules: readonly TestRule[] = [
    { path: ["user"], effect: [testLimit(1)] },
    { path: ["group"], effect: [testLimit(5)] },
  ];

  it("refuse nobody with isShadow, charge each limit alone and say who would be over", async () => {
    const { decide, counters, hits } = deciderFor(rules, { isShadow: true });
    await decide("user=a", "group=g");
    const second = await decide("user=a", "group=g");
    expect(second).toMatchObject({
      isDenied: false,
      statuses: [{ isOver: true }, { isOver: false, limitRemaining: 3 }],
    });
    expect([counters.shadowedCount, counters.okCount, counters.deniedCount]).toEqual([1, 2, 0]);
    expect(hits(0)).toMatchObject({ total: 2, within: 1, over: 1 });
  });

  it("deny with isQuota only when all limits of a request are over", async () => {
    const { decide } = deciderFor(rules, { isQuota: true });
    await decide("user=a", "group=g");
    const second = await decide("user=a", "group=g");
    expect(second).toMatchObject({ isDenied: false, statuses: [{ isOver: true }, {}] });
    expect((await decide("user=a")).isDenied).toBe(true);
  });

  it("charge what was denied with chargesDenied, and nothing without", async () => {
    const remaining = async (chargesDenied: boolean): Promise<number | undefined> => {
      const { decide } = deciderFor(rules, { chargesDenied });
      await decide("user=a", "group=g");
      await decide("user=a", "group=g");
      return (await decide("group=g")).statuses[0]?.limitRemaining;
    };
    expect([await remaining(true), await remaining(false)]).toEqual([2, 3]);
  });
});

describe("costs that are told after the response, to rules of envoyproxy/ratelimit", () => {
  const fields = { settlesOncePeeked: true } as const;
  const quota = (hits: number) => [testLimit(hits, { role: "quota" })];
  const rules: readonly TestRule[] = [
    { path: ["service=1"], effect: quota(1), fields },
    { path: ["service=2"], effect: quota(2), fields },
    { path: ["tokens"], effect: [testLimit(100)], fields },
    { path: ["own"], effect: [testLimit(100)] },
  ];

  /** What a proxy asks for one request: without cost before it, and its cost behind it. */
  async function admitted(
    { decide, clock }: ReturnType<typeof deciderFor>,
    { names, cost, times }: { names: readonly string[]; cost: number; times: number },
  ): Promise<readonly boolean[]> {
    const found: boolean[] = [];
    for (let count = 0; count < times; count += 1) {
      const asked = await decide(...names.map((name) => descriptor(name, { hits: 0 })));
      found.push(!asked.isDenied);
      const served = names.find((_, i) => asked.statuses[i]?.isOver === false);
      if (served !== undefined) await decide(descriptor(served, { hits: cost }));
    }
    clock.advance(0);
    return found;
  }

  it("count above the limit too, so that the question refuses (token-quota)", async () => {
    const rig = deciderFor(rules);
    expect(await admitted(rig, { names: ["service=2"], cost: 1, times: 4 })).toEqual([
      true,
      true,
      true,
      false,
    ]);
    rig.clock.advance(60_000);
    expect(await admitted(rig, { names: ["service=2"], cost: 1, times: 1 })).toEqual([true]);
  });

  it("are those of whoever has room, until nobody has (multiservice-tokenquota)", async () => {
    const names = ["service=1", "service=2"];
    expect(await admitted(deciderFor(rules), { names, cost: 1, times: 6 })).toEqual([
      ...new Array(5).fill(true),
      false,
    ]);
  });

  it("are a debt where they are large, of one more burst at most", async () => {
    const rig = deciderFor(rules);
    const ask = { names: ["tokens=a"], cost: 90, times: 3 };
    expect(await admitted(rig, ask)).toEqual([true, true, false]);
    rig.clock.advance(48_000);
    expect(await admitted(rig, { ...ask, times: 1 })).toEqual([true]);
  });

  it("are hits like any others to rules of a policy, which can say `charge: settle`", async () => {
    const ask = { names: ["own=a"], cost: 90, times: 3 };
    expect(await admitted(deciderFor(rules), ask)).toEqual([true, true, true]);
  });

  it("let a request pass by one of two quotas, although both settle", async () => {
    const rig = deciderFor(rules);
    await admitted(rig, { names: ["service=1", "service=2"], cost: 0, times: 1 });
    const both = async () => (await rig.decide("service=1", "service=2")).isDenied;
    expect([await both(), await both(), await both()]).toEqual([false, false, true]);
  });
});

/** How limits count and what is charged: our own ways, and those of envoyproxy/ratelimit. */
const ways = {
  "as is usual": [{}, {}],
  "with HEADGATE_ALGORITHM=fixed_window": [{ algorithm: { kind: "fixed_window" } }, {}],
  "with HEADGATE_CHARGE_DENIED": [{}, { chargesDenied: true }],
  "with both": [{ algorithm: { kind: "fixed_window" } }, { chargesDenied: true }],
} as const;

describe.each(Object.entries(ways))("quotas of envoyproxy/ratelimit's scripts, %s", (_, way) => {
  const [counting, switches] = way;
  const quota = (hits: number) => [testLimit(hits, { role: "quota", ...counting })];
  const fields = { settlesOncePeeked: true } as const;
  const names = ["service=1", "service=2"];
  const rigOf = () =>
    deciderFor(
      [
        { path: ["service=1"], effect: quota(1), fields },
        { path: ["service=2"], effect: quota(2), fields },
      ],
      switches,
    );

  /** Asks without cost; whoever has room serves the request, and is charged after it. */
  async function servedBy({ decide }: ReturnType<typeof deciderFor>, asked: readonly string[]) {
    const { isDenied, statuses } = await decide(
      ...asked.map((name) => descriptor(name, { hits: 0 })),
    );
    const served = asked.find((_, i) => statuses[i]?.isOver === false);
    if (isDenied || served === undefined) return "nobody";
    await decide(descriptor(served, { hits: 1 }));
    return served;
  }

  async function servedInTurn(
    rig: ReturnType<typeof deciderFor>,
    asked: readonly string[],
    times: number,
  ): Promise<readonly string[]> {
    const served: string[] = [];
    for (let count = 0; count < times; count += 1) served.push(await servedBy(rig, asked));
    return served;
  }

  it("refuse once all are used up, and after a minute are refreshed (quota)", async () => {
    const rig = rigOf();
    const isDenied = async () => (await rig.decide(...names)).isDenied;
    expect([await isDenied(), await isDenied(), await isDenied()]).toEqual([false, false, true]);
    rig.clock.advance(60_000);
    expect(await isDenied()).toBe(false);
  });

  it("refuse once in debt, and after a minute are refreshed (token-quota)", async () => {
    const rig = rigOf();
    const [, two = ""] = names;
    expect(await servedInTurn(rig, [two], 4)).toEqual([two, two, two, "nobody"]);
    rig.clock.advance(60_000);
    expect(await servedInTurn(rig, [two], 1)).toEqual([two]);
  });

  it("are of who has room, and after a minute of service 1 again (multiservice)", async () => {
    const rig = rigOf();
    const [one = "", two = ""] = names;
    expect(await servedInTurn(rig, names, 6)).toEqual([one, one, two, two, two, "nobody"]);
    rig.clock.advance(60_000);
    expect(await servedInTurn(rig, names, 1)).toEqual([one]);
  });
});

describe("hits by name", () => {
  it("are counted as what became of them", async () => {
    const { decide, hits } = deciderFor([
      { path: ["user"], effect: [testLimit(10)] },
      { path: ["trial"], effect: [testLimit(1, { role: "shadow" })] },
      { path: ["guest"], effect: { kind: "unlimited" } },
    ]);
    const user = (count: number, isRefund = false) =>
      descriptor("user=a", { hits: count, isRefund });
    await decide(user(6));
    await decide(user(3));
    expect(hits(0)).toMatchObject({ total: 9, within: 9, near: 1, over: 0 });
    await decide(user(2));
    await decide(user(2));
    expect(hits(0)).toMatchObject({ total: 13, within: 9, over: 4, overFromMemory: 2 });
    await decide(user(4, true));
    expect(hits(0)).toMatchObject({ total: 13, refunded: 4 });
    await decide(descriptor("trial=a", { hits: 2 }), descriptor("guest=a", { hits: 3 }));
    expect(hits(1)).toMatchObject({ total: 2, over: 2, shadow: 2, within: 0 });
    expect(hits(2)).toMatchObject({ total: 3, within: 3, near: 0 });
  });

  const detailed: TestRule = {
    path: ["path", "user"],
    effect: [testLimit(10)],
    fields: { metricPath: [{ kind: "policy", text: "path" }, { kind: "request" }] },
  };

  it("are counted by the values that a rule wants to see, and only by those", async () => {
    const { decide, counters, hits } = deciderFor([detailed]);
    await decide("path=/a,user=ann");
    await decide("path=/b,user=ann");
    await decide("path=/b,user=");
    const named = [...counters.detailed].map((one) => [one.label, one.hits.total]);
    expect(named).toEqual([
      ["path.user_ann", 2],
      ["path.user", 1],
    ]);
    expect(hits(0)?.total).toBe(0);
    expect(counters.forPolicy(testPolicy([detailed]))[0]?.ok).toBe(3);
  });

  it("keep no more of a caller's value than fits a name", async () => {
    const { decide, counters } = deciderFor([detailed]);
    const long = "x".repeat(metricLabelLengthMax);
    await decide(`path=/a,user=${long}1`);
    await decide(`path=/a,user=${long}2`);
    const named = [...counters.detailed].map((one) => [one.label.length, one.hits.total]);
    expect(named).toEqual([[metricLabelLengthMax, 2]]);
  });

  it("go under the rule's own name when there are too many, and away with the rule", async () => {
    const { decide, counters, hits, policies } = deciderFor([detailed]);
    for (let i = 0; i <= detailedSeriesMax; i += 1) await decide(`path=/a,user=u${i}`);
    expect([...counters.detailed]).toHaveLength(detailedSeriesMax);
    expect(hits(0)?.total).toBe(1);
    policies.value = testPolicy([{ path: ["other"], effect: [testLimit(1)] }], "v2");
    counters.forPolicy(policies.value);
    expect([...counters.detailed]).toEqual([]);
  });
});
