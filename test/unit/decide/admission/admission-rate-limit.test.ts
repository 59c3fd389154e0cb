import { beforeEach, describe, expect, it } from "vitest";
import {
  keptQueriesBytesMax,
  RateLimitAsker,
  rateLimitQuery,
} from "../../../../src/decide/admission/admission-rate-limit.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { Decider } from "../../../../src/decide/rate-limit/decider.js";
import { type LoggedRefusal, RefusalLog } from "../../../../src/decide/rate-limit/refusal-log.js";
import type { Policy } from "../../../../src/policy/policy.js";
import type { ServicePolicy } from "../../../../src/policy/services/service-policy.js";
import type { ServiceRateLimit } from "../../../../src/policy/services/service-rate-limit.js";
import { askedOnce } from "../../../../src/policy/services/service-rate-limit.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { AdmissionRig, servicesPolicy, testService } from "../../../support/admission.js";
import { createTestDecider } from "../../../support/decider.js";
import { FakeClock, settlePromises } from "../../../support/fake-clock.js";
import { FaultyStore } from "../../../support/faulty-store.js";
import { testLimit, testPolicy } from "../../../support/policies.js";

const byUser: ServiceRateLimit = {
  domain: "shop",
  inExtProc: true,
  descriptors: [
    askedOnce([
      { kind: "fixed", key: "generic_key", value: "orders" },
      { kind: "header", header: "x-user", key: "user" },
    ]),
  ],
};

const clockOf = { clock: new FakeClock() };

beforeEach(() => {
  clockOf.clock = new FakeClock();
});

interface World {
  readonly rig: AdmissionRig;
  readonly decider: Decider;
  readonly store: FaultyStore;
}

interface WorldParts {
  readonly onStoreFailure?: "local" | "error";
  readonly refusalLog?: RefusalLog;
}

/** Two hits a minute for each user, asked in the call that admits. */
function createWorld(
  admission: Parameters<typeof testService>[0],
  fields: Partial<ServicePolicy> = {},
  { onStoreFailure = "local", ...logs }: WorldParts = {},
): World {
  const { clock } = clockOf;
  const limit = testLimit(2, { onStoreFailure });
  const rules = testPolicy([{ path: ["generic_key=orders", "user"], effect: [limit] }]);
  const policy: Policy = servicesPolicy(
    [testService(admission, { rateLimit: byUser, ...fields })],
    rules,
  );
  const store = new FaultyStore(new MemoryLimitStore({ clock }), clock);
  const decider = createTestDecider({
    clock,
    store,
    policies: { current: () => policy },
    counters: new DecisionCounters(),
  });
  return { rig: new AdmissionRig(policy, { clock, decider, ...logs }), decider, store };
}

async function askAll(rig: AdmissionRig, users: readonly string[]): Promise<readonly string[]> {
  const visits = users.map((user) => rig.ask({ user }));
  rig.clock.runTurns();
  await settlePromises();
  return visits.map(({ verdict }) => verdict);
}

describe("RateLimitAsker", () => {
  it("charges in the call that admits, and says when to come back", async () => {
    const { rig } = createWorld({ maxInFlight: 100 });
    expect(await askAll(rig, ["a", "a", "a", "b"])).toEqual([
      "admitted",
      "admitted",
      "rate_limit",
      "admitted",
    ]);
    const visit = rig.ask({ user: "a" });
    rig.clock.runTurns();
    await settlePromises();
    expect(visit.refusals[0]).toMatchObject({
      status: 429,
      headers: [{ name: "retry-after", value: "30" }, {}, {}],
    });
  });

  it("works for a service without admission, whose requests nobody follows", async () => {
    const { rig } = createWorld(undefined);
    expect(await askAll(rig, ["a", "a", "a"])).toEqual(["admitted", "admitted", "rate_limit"]);
    const visit = rig.ask({ user: "b" });
    rig.clock.runTurns();
    await settlePromises();
    expect(visit.terms[0]?.isFollowed).toBe(false);
  });

  it("charges nobody who is refused for want of a permit", async () => {
    const { rig } = createWorld({ maxInFlight: 1 });
    expect(await askAll(rig, ["a"])).toEqual(["admitted"]);
    expect(await askAll(rig, ["a", "a", "a"])).toEqual([
      "concurrency",
      "concurrency",
      "concurrency",
    ]);
    const { pools } = rig.service();
    pools.whole.giveBack("envoy", "normal", rig.clock.monotonicMs());
    expect(await askAll(rig, ["a"])).toEqual(["admitted"]);
  });

  it("charges nobody who finds the queue full, where nobody is displaced", async () => {
    const queue = { sizeMax: 1, waitMsMax: 2_000, order: "fifo", codel: undefined } as const;
    const { rig } = createWorld({ maxInFlight: 1, queue });
    expect(await askAll(rig, ["a", "b"])).toEqual(["admitted", "waiting"]);
    expect(await askAll(rig, ["c", "c", "c"])).toEqual(["queue_full", "queue_full", "queue_full"]);
    rig.service().pools.whole.giveBack("envoy", "normal", rig.clock.monotonicMs());
    expect(await askAll(rig, ["c"])).not.toEqual(["rate_limit"]);
  });

  it("charges who displaces somebody in the queue", async () => {
    const queue = { sizeMax: 1, waitMsMax: 2_000, order: "priority", codel: undefined } as const;
    const { rig } = createWorld({ maxInFlight: 1, queue });
    expect(await askAll(rig, ["a", "a"])).toEqual(["admitted", "waiting"]);
    const critical = rig.ask({ user: "a", priority: "critical" });
    rig.clock.runTurns();
    await settlePromises();
    expect(critical.verdict).toBe("rate_limit");
  });

  it("refuses for want of a permit who was charged but overtaken meanwhile", async () => {
    const { rig } = createWorld({ maxInFlight: 1 });
    expect(await askAll(rig, ["a", "b"])).toEqual(["admitted", "concurrency"]);
  });

  it("only counts in a dry run, and not at all what Envoy only shows", async () => {
    const { rig } = createWorld({ dryRun: new Set(["rateLimit"]) });
    expect(await askAll(rig, ["a", "a", "a"])).toEqual(["admitted", "admitted", "admitted"]);
    expect(rig.service().counts.dryRefused.of("normal", "rateLimit")).toBe(1);
    const observed = rig.ask({ user: "a", isObserved: true });
    expect(observed.verdict).toBe("admitted");
    expect(rig.service().counts.dryRefused.of("normal", "rateLimit")).toBe(1);
  });

  it("charges who finds no permit where permits only count, and lets them pass", async () => {
    const { rig } = createWorld({ maxInFlight: 1, dryRun: new Set(["permits"]) });
    expect(await askAll(rig, ["a", "a", "a"])).toEqual(["admitted", "admitted", "rate_limit"]);
    expect(await askAll(rig, ["a", "b"])).toEqual(["rate_limit", "admitted"]);
    expect(rig.service().counts.refused.of("normal", "concurrency")).toBe(0);
    expect(rig.service().counts.dryRefused.of("normal", "concurrency")).toBe(2);
  });

  it("leaves it to the decider to log whom a rate limit refuses", async () => {
    const logged: LoggedRefusal[] = [];
    const refusalLog = new RefusalLog({
      perSecondMax: 10,
      onRefused: (reported) => logged.push(reported),
    });
    const { rig } = createWorld({ maxInFlight: 3 }, {}, { refusalLog });
    expect(await askAll(rig, ["a", "a", "a"])).toEqual(["admitted", "admitted", "rate_limit"]);
    expect(logged).toEqual([]);
    expect(await askAll(rig, ["b"])).toEqual(["admitted"]);
    expect(await askAll(rig, ["b"])).toEqual(["concurrency"]);
    const reported = { kind: "service", service: "orders", cause: "concurrency", refusedCount: 1 };
    expect(logged).toEqual([reported]);
  });

  it("lets pass, and counts, what nobody can decide", async () => {
    const { rig, store } = createWorld({}, {}, { onStoreFailure: "error" });
    store.fault = { kind: "reject", code: "STORE_UNAVAILABLE" };
    expect(await askAll(rig, ["a"])).toEqual(["admitted"]);
    expect(rig.service().counts.rateLimitFailedCount).toBe(1);
  });

  it("lets a caller go while it asks, and holds nothing for it", async () => {
    const { rig } = createWorld({ maxInFlight: 5 });
    const visit = rig.ask({ user: "a" });
    expect(visit.verdict).toBe("asking");
    visit.leave();
    rig.clock.runTurns();
    await settlePromises();
    expect(visit.verdict).toBe("asking");
    expect(rig.service().pools.whole.inUseCount()).toBe(0);
    expect(rig.service().counts.leftCount).toBe(1);
  });

  it("keeps no more queries than its bound", async () => {
    const { decider } = createWorld({});
    let prepareCount = 0;
    const counting = {
      prepare: (...args: Parameters<Decider["prepare"]>) => {
        prepareCount += 1;
        return decider.prepare(...args);
      },
      isCurrent: (prepared: Parameters<Decider["isCurrent"]>[0]) => decider.isCurrent(prepared),
      ask: () => {},
    };
    const asker = new RateLimitAsker(counting, (request) => rateLimitQuery(byUser, request));
    const ask = (i: number, suffix = ""): void => {
      const headers = new Map([["x-user", `user-${i}${suffix}`]]);
      const attributes = new Map();
      const request = {
        serviceName: "orders",
        peer: "envoy",
        headers,
        attributes,
        isObserved: false,
      };
      asker.ask(request, Number.POSITIVE_INFINITY, () => {});
    };
    for (let i = 0; i < 100; i += 1) ask(i % 10);
    expect(prepareCount).toBe(10);
    // Each takes a kilobyte at least.
    const keptMax = keptQueriesBytesMax / 1_000;
    for (let i = 0; i < 3 * keptMax; i += 1) ask(i);
    prepareCount = 0;
    for (let i = 0; i < 3 * keptMax; i += 1) ask(i);
    expect(prepareCount).toBeGreaterThan(2 * keptMax - 1);
    prepareCount = 0;
    for (let i = 0; i < 10; i += 1) ask(i % 2, "a value that is too long to be kept ".repeat(50));
    expect(prepareCount).toBe(10);
  });
});

describe("rateLimitQuery()", () => {
  const request = (fields: Readonly<Record<string, string>>) => ({
    headers: new Map(Object.entries(fields)),
    attributes: new Map([["source.address", "10.0.0.1:99"]]),
  });

  it("leaves out a descriptor with a part that is missing, and asks nothing without any", () => {
    const limit: ServiceRateLimit = {
      ...byUser,
      descriptors: [
        ...byUser.descriptors,
        askedOnce([{ kind: "remoteAddress", key: "remote_address" }]),
      ],
    };
    expect(rateLimitQuery(limit, request({}))).toEqual({
      domain: "shop",
      descriptors: [
        { entries: [{ key: "remote_address", value: "10.0.0.1" }], hits: 1, isRefund: false },
      ],
      canDelay: true,
    });
    expect(rateLimitQuery(byUser, request({}))).toBeUndefined();
    expect(rateLimitQuery(byUser, request({ "x-user": "a" }))?.descriptors).toHaveLength(1);
  });

  it("writes an empty header and an IPv6 address as Envoy's own filter does", () => {
    const limit: ServiceRateLimit = {
      ...byUser,
      descriptors: [
        askedOnce([
          { kind: "header", header: "x-user", key: "user" },
          { kind: "remoteAddress", key: "remote_address" },
        ]),
      ],
    };
    const attributes = new Map([["source.address", "[2001:db8::1]:99"]]);
    const query = rateLimitQuery(limit, { ...request({ "x-user": "" }), attributes });
    expect(query?.descriptors[0]?.entries).toEqual([
      { key: "user", value: "" },
      { key: "remote_address", value: "2001:db8::1" },
    ]);
  });

  it("asks of values of any length", () => {
    const value = "a".repeat(70_000);
    const [descriptor] = rateLimitQuery(byUser, request({ "x-user": value }))?.descriptors ?? [];
    expect(descriptor?.entries.at(-1)?.value).toBe(value);
  });
});
