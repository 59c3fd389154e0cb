import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Random } from "../../../../src/core/base/clock.js";
import { DecisionCounters } from "../../../../src/decide/rate-limit/counters.js";
import type { PreparedQuery } from "../../../../src/decide/rate-limit/prepared-query.js";
import { RateLimitRequestSchema } from "../../../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { createRateLimitService } from "../../../../src/rpc/rls/rls.js";
import {
  RequestCache,
  type RequestCacheBounds,
} from "../../../../src/rpc/rls/rls-request-cache.js";
import { scanRateLimitRequest } from "../../../../src/rpc/rls/rls-scanner.js";
import { MemoryLimitStore } from "../../../../src/store/memory.js";
import { createTestDecider } from "../../../support/decider.js";
import { plainExtras } from "../../../support/extras.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { FakeRandom } from "../../../support/fake-random.js";
import { testLimit, testPolicy } from "../../../support/policies.js";
import { propertyRuns } from "../../../support/seeds.js";
import { answerOf } from "../../../support/unary.js";

type RequestShape = MessageInitShape<typeof RateLimitRequestSchema>;

const daily = testLimit(20, { name: "daily", unit: "day", periodUs: 86_400_000_000 });
const window = testLimit(4, { algorithm: { kind: "fixed_window" } });

function policyOf(burst: number) {
  return testPolicy(
    [
      { path: ["user"], effect: [testLimit(burst), daily] },
      { path: ["user=root"], effect: { kind: "unlimited" } },
      { path: ["window"], effect: [window] },
      { path: ["plan"], effect: [{ ...window, hits: 100, burst: 100 }] },
      { path: ["tokens"], effect: [testLimit(burst, { role: "settle", peek: "exhausted" })] },
      { path: ["quota"], effect: [testLimit(2, { role: "quota" })] },
      { path: ["shadow"], effect: [testLimit(1, { role: "shadow" })] },
      { path: ["free"], effect: [testLimit(9)], fields: { replaces: ["daily"] } },
      {
        path: ["series"],
        effect: [testLimit(3)],
        fields: { metricPath: [{ kind: "request" }] },
      },
    ],
    `burst ${burst}`,
  );
}

interface World {
  readonly clock: FakeClock;
  readonly counters: DecisionCounters;
  readonly policies: { current: ReturnType<typeof policyOf> };
  readonly preparedCount: { value: number };
  readonly begin: (shape: RequestShape) => Promise<Uint8Array>;
  /** Begins, and ends the turn. */
  readonly ask: (shape: RequestShape) => Promise<Uint8Array>;
}

/** A service with the embedded store; `isForgetful` never knows a request again. */
function createWorld(requestCache: RequestCacheBounds, isForgetful: boolean): World {
  const clock = new FakeClock();
  const counters = new DecisionCounters();
  const policies = { current: policyOf(5) };
  const random: Random = new FakeRandom(11);
  const decider = createTestDecider({
    policies: { current: () => policies.current },
    store: new MemoryLimitStore({ clock, random }),
    clock,
    counters,
  });
  const preparedCount = { value: 0 };
  const watched: Parameters<typeof createRateLimitService>[0]["decider"] = {
    prepare: (query, isKept) => {
      preparedCount.value += 1;
      return decider.prepare(query, isKept);
    },
    isCurrent: (prepared) => !isForgetful && decider.isCurrent(prepared),
    rehydrate: decider.rehydrate,
    ask: (prepared, call) => decider.ask(prepared, call),
  };
  const [method] = createRateLimitService({
    decider: watched,
    clock,
    random,
    counters,
    extras: plainExtras,
    isShadow: false,
    requestCache,
  }).methods;
  if (method?.kind !== "unary") throw new Error("ShouldRateLimit is unary");
  const call = { deadlineMs: Number.POSITIVE_INFINITY, metadata: () => undefined };
  const begin = (shape: RequestShape): Promise<Uint8Array> => {
    const bytes = toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, shape));
    return answerOf(method.handle, bytes, call);
  };
  const ask = (shape: RequestShape): Promise<Uint8Array> => {
    const answer = begin(shape);
    clock.runTurns();
    return answer;
  };
  return { clock, counters, policies, preparedCount, begin, ask };
}

const callers = fc.constantFrom("ann", "bob", "eve", "kim", "é", "x".repeat(300));
const keys = fc.constantFrom(
  "user",
  "user",
  "window",
  "tokens",
  "quota",
  "shadow",
  "free",
  "series",
  "nobody",
);
const descriptors = fc.record(
  {
    entries: fc.tuple(fc.record({ key: keys, value: fc.oneof(callers, fc.constant("root")) })),
    hitsAddend: fc.bigInt(0n, 3n),
    isNegativeHits: fc.boolean(),
    limit: fc.record({ requestsPerUnit: fc.constantFrom(3, 4), unit: fc.constant(2) }),
  },
  { requiredKeys: ["entries"] },
);
const requests = fc.record({
  domain: fc.constantFrom("shop", "shop", "shop", "void"),
  descriptors: fc.array(descriptors, { minLength: 1, maxLength: 3 }),
  hitsAddend: fc.nat(3),
});

/** Asks some of a few requests again and again, with time and edits of the policy in between. */
const histories = fc.record({
  asked: fc.array(requests, { minLength: 1, maxLength: 12 }),
  steps: fc.array(
    fc.record({
      which: fc.nat(11),
      passedMs: fc.constantFrom(0, 0, 0, 500, 20_000, 61_000),
      burst: fc.constantFrom(5, 5, 5, 5, 5, 5, 7),
    }),
    { maxLength: 60, size: "max" },
  ),
});

function asking(name: string): RequestShape {
  return { domain: "shop", descriptors: [{ entries: [{ key: "user", value: name }] }] };
}

describe("RequestCache", () => {
  it.each([
    { story: "that are all among the last", bounds: {} },
    { story: "that all fit", bounds: { recentMax: 1 } },
    { story: "of which few fit", bounds: { recentMax: 1, shapedMax: 5, keptBytesMax: 2_000 } },
  ])("changes no answer and no count, with requests $story", async ({ bounds }) => {
    const property = fc.asyncProperty(histories, async ({ asked, steps }) => {
      const knowing = createWorld(bounds, false);
      const forgetful = createWorld(bounds, true);
      for (const { which, passedMs, burst } of steps) {
        const request = asked[which % asked.length] ?? asking("ann");
        for (const { clock, policies } of [knowing, forgetful]) {
          clock.advance(passedMs);
          if (policies.current.version !== `burst ${burst}`) policies.current = policyOf(burst);
        }
        expect(await knowing.ask(request)).toEqual(await forgetful.ask(request));
      }
      const counts = [knowing, forgetful].map(({ counters, policies }) => ({
        rules: counters.forPolicy(policies.current),
        series: [...counters.detailed],
        ok: counters.okCount,
        denied: counters.deniedCount,
        unmatched: counters.unmatchedDescriptorCount,
        refusedFromMemory: counters.refusedFromMemoryCount,
      }));
      expect(counts[0]).toEqual(counts[1]);
    });
    await fc.assert(property, propertyRuns(20));
  });

  it("changes no answer where callers share keys, over windows that end", async () => {
    const worlds = [createWorld({ recentMax: 1 }, false), createWorld({}, true)];
    for (let call = 0; call < 400; call += 1) {
      const values = { plan: "basic", user: `user ${call % 40}`, shadow: "all" };
      const descriptors = Object.entries(values).map(([key, value]) => ({
        entries: [{ key, value }],
      }));
      const request = { domain: "shop", descriptors };
      const [knowing, forgetful] = worlds.map((world) => {
        world.clock.advance(500);
        return world.ask(request);
      });
      expect(await knowing).toEqual(await forgetful);
    }
    const [knowing] = worlds;
    expect(knowing?.preparedCount.value).toBe(40);
    expect(knowing?.counters.deniedCount).toBeGreaterThan(0);
  });

  it("matches a request once, and others of its shape as well", async () => {
    const { ask, preparedCount } = createWorld({}, false);
    for (let round = 0; round < 3; round += 1) {
      for (const name of ["ann", "bob", "eve"]) await ask(asking(name));
    }
    expect(preparedCount.value).toBe(3);
  });

  it("keeps what is asked again, and gives up what is not, at its bound", async () => {
    const { ask, preparedCount } = createWorld({ shapedMax: 200, recentMax: 1 }, false);
    // Two limits a request, so two places each: 20 stay in use, and 500 come once.
    for (let i = 0; i < 500; i += 1) {
      for (let kept = 0; kept < 20; kept += 1) await ask(asking(`kept ${kept}`));
      await ask(asking(`once ${i}`));
    }
    expect(preparedCount.value).toBe(520);
  });

  it("never holds more than its bound, nor old ones when the policy changes", () => {
    const clock = new FakeClock();
    const policies = { current: policyOf(5) };
    const decider = createTestDecider({
      policies: { current: () => policies.current },
      clock,
      counters: new DecisionCounters(),
    });
    const known = new RequestCache(decider, new FakeRandom(), { shapedMax: 50 });
    const digestOf = (name: string) => {
      const shape = create(RateLimitRequestSchema, asking(name));
      const scanned = scanRateLimitRequest(toBinary(RateLimitRequestSchema, shape));
      if (scanned === undefined) throw new Error("the scanner knows such requests");
      return known.digestOf(scanned.identity);
    };
    const prepare = (name: string): PreparedQuery => {
      const entries = [{ key: "user", value: name }];
      const asked = { domain: "shop", descriptors: [{ entries, hits: 1, isRefund: false }] };
      return decider.prepare(asked, known.wantsKept());
    };
    for (let i = 0; i < 500; i += 1) {
      known.add(digestOf(`user ${i}`), prepare(`user ${i}`), false);
      expect(known.shapedCount).toBeLessThanOrEqual(50);
    }
    expect(known.shapedCount).toBe(50);
    expect(known.find(digestOf("user 499"))?.charges.length).toBe(2);
    policies.current = policyOf(7);
    expect(known.find(digestOf("user 499"))).toBeUndefined();
    expect(known.shapedCount).toBe(0);
  });

  it("refuses from memory what was refused to a query of before", async () => {
    const { ask, counters } = createWorld({ recentMax: 1 }, false);
    for (let i = 0; i < 6; i += 1) await ask(asking("ann"));
    expect(counters.deniedCount).toBe(1);
    await ask(asking("bob"));
    const { batchCount } = counters;
    await ask(asking("ann"));
    expect([counters.deniedCount, counters.refusedFromMemoryCount]).toEqual([2, 1]);
    expect(counters.batchCount).toBe(batchCount);
  });

  it("decides what is asked twice in one turn as one request", async () => {
    const { begin, clock, counters } = createWorld({}, false);
    for (let round = 0; round < 2; round += 1) {
      const answers = ["ann", "bob", "ann", "ann"].map((name) => begin(asking(name)));
      clock.runTurns();
      await Promise.all(answers);
    }
    expect(counters.batchRequestCount).toBe(4);
    expect(counters.coalescedCount).toBe(4);
  });
});
