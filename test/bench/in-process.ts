import { cacheBounds } from "../../src/app/base/cache-bounds.js";
import { sha256 } from "../../src/app/base/sha256.js";
import type { Charge } from "../../src/core/limits/bucket.js";
import type { Verdict } from "../../src/core/limits/verdict.js";
import { DecisionSampler } from "../../src/decide/inspect/decision-sampler.js";
import { DecisionCounters } from "../../src/decide/rate-limit/counters.js";
import { Decider, type DeciderParts } from "../../src/decide/rate-limit/decider.js";
import { Pressure } from "../../src/decide/rate-limit/pressure.js";
import { systemClock, systemRandom } from "../../src/host/clock.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { type Policy, PolicyBuilder } from "../../src/policy/policy.js";
import { RespCounts } from "../../src/rpc/resp/resp-counts.js";
import { createRespSession } from "../../src/rpc/resp/resp-session.js";
import { createRateLimitService, type DecidesPrepared } from "../../src/rpc/rls/rls.js";
import type { LimitStore } from "../../src/store/limit-store.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import type { ServiceHandlers, UnaryHandler } from "../../src/wire/grpc/service.js";
import type { AnswersCommands } from "../../src/wire/resp/resp-connection.js";
import { plainExtras } from "../support/extras.js";
import { RedisServer } from "../support/redis-server.js";
import { openTestStore } from "../support/redis-store.js";
import { noSwitches } from "../support/switches.js";
import { type CallShape, decideMany, inFlight, sharedKeys } from "./calls.js";
import { processCpuUs } from "./process-cpu.js";

/** One row: what a decision costs from a request's bytes to an answer's, without a transport. */
export interface InProcessRow {
  readonly name: string;
  /** CPU of this process for one decision, in microseconds. */
  readonly cpuUsPerDecision: number;
  /** CPU of Redis for one decision; absent with the embedded store. */
  readonly redisCpuUsPerDecision?: number;
  /** Where the time goes, in microseconds a decision; absent where it is not looked at. */
  readonly parts?: Readonly<Record<string, number>>;
}

/** What a row measures. */
export interface InProcessScenario extends CallShape {
  readonly name: string;
  readonly store?: "memory" | "redis";
  readonly ruleCount?: number;
  /** Hits a second that each key may take. */
  readonly hitsPerSecond?: number;
  /** Whether the limits are one budget of all regions. */
  readonly isGlobal?: boolean;
  /** Whether `CL.THROTTLE` asks, with numbers of its own, and not the rate limit service. */
  readonly isThrottle?: boolean;
  /** Whether the parts are measured one by one as well. */
  readonly hasParts?: boolean;
}

/** The rows of the bench, each measured in the same process and run. */
export const inProcessScenarios: readonly InProcessScenario[] = [
  { name: "1 key", keyCount: 1 },
  { name: "200 keys", keyCount: 200 },
  { name: "20,000 keys", keyCount: 20_000, hasParts: true },
  { name: "20,000 keys, two limits", keyCount: 20_000, limitCount: 2 },
  { name: "20,000 keys, CL.THROTTLE", keyCount: 20_000, isThrottle: true },
  { name: "20,000 keys, 10,000 rules", keyCount: 20_000, ruleCount: 10_000 },
  { name: "1,000,000 keys", keyCount: 1_000_000 },
  { name: "1 key, denied", keyCount: 1, hitsPerSecond: 1 },
  { name: "Redis, 1 key", keyCount: 1, store: "redis" },
  { name: "Redis, 20,000 keys", keyCount: 20_000, store: "redis" },
  { name: "Redis, 20,000 keys, two limits", keyCount: 20_000, limitCount: 2, store: "redis" },
];

/** Decisions before the first that counts: by then what runs often is compiled for good. */
const warmUpDecisionsMin = 100_000;

/** Measures the work of decisions with a Redis of their own. */
export async function measureWithRedis(
  scenario: InProcessScenario,
  decisionCount: number,
): Promise<InProcessRow> {
  const redis = await RedisServer.start({ engine: "redis" });
  try {
    const { store } = await openTestStore(redis);
    const handle = createHandler(createPolicy(scenario), store);
    await decideMany(handle, scenario, Math.max(warmUpDecisionsMin, decisionCount / 4));
    const redisBeforeUs = processCpuUs(redis.pid);
    const cpuUsPerDecision = await cpuUsPer(decisionCount, () =>
      decideMany(handle, scenario, decisionCount),
    );
    const redisCpuUsPerDecision = (processCpuUs(redis.pid) - redisBeforeUs) / decisionCount;
    await store.close();
    return { name: scenario.name, cpuUsPerDecision, redisCpuUsPerDecision };
  } finally {
    await redis.stop();
  }
}

/** CPU of this process while the work is done, in microseconds divided by the count. */
export async function cpuUsPer(count: number, work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const used = process.cpuUsage(before);
  return (used.user + used.system) / count;
}

/**
 * The whole in three parts: bytes to a known request and a verdict to bytes (a decider that answers
 * at once), the store's own work (batches of charges), and what is left for the decider.
 */
export async function measureParts(
  scenario: InProcessScenario,
  { decisionCount, wholeUs }: { readonly decisionCount: number; readonly wholeUs: number },
): Promise<Readonly<Record<string, number>>> {
  const codec = createCodec(createPolicy(scenario));
  await decideMany(codec, scenario, decisionCount / 4);
  const codecUs = await cpuUsPer(decisionCount, () => decideMany(codec, scenario, decisionCount));
  const store = new MemoryLimitStore({ clock: systemClock });
  const batches = createBatches(scenario);
  await takeMany(store, batches, decisionCount / 4);
  const storeUs = await cpuUsPer(decisionCount, () => takeMany(store, batches, decisionCount));
  await store.close();
  return {
    "bytes in and out": codecUs,
    "store and law": storeUs,
    decider: wholeUs - codecUs - storeUs,
  };
}

/** The service with a decider that knows every request and answers what it answered first. */
function createCodec(policy: Policy): UnaryHandler {
  const counters = new DecisionCounters();
  const store = new MemoryLimitStore({ clock: systemClock });
  const known = createDecider({ policy, store, counters });
  let verdict: Verdict | undefined;
  const decider: DecidesPrepared = {
    prepare: (query, isKept) => known.prepare(query, isKept),
    isCurrent: (prepared) => known.isCurrent(prepared),
    rehydrate: known.rehydrate,
    ask: (prepared, call) => {
      if (verdict !== undefined) {
        call.decided(verdict);
        return;
      }
      known.ask(prepared, {
        ...call,
        decided: (first) => {
          verdict = first;
          call.decided(first);
        },
        failed: (thrown) => call.failed(thrown),
      });
    },
  };
  return handlerOf(
    createRateLimitService({
      decider,
      clock: systemClock,
      random: systemRandom,
      counters,
      extras: plainExtras,
      isShadow: false,
    }),
  );
}

function createBatches(scenario: InProcessScenario): readonly (readonly Charge[])[] {
  const decider = createDecider({
    policy: createPolicy(scenario),
    store: new MemoryLimitStore({ clock: systemClock }),
    counters: new DecisionCounters(),
  });
  return Array.from({ length: scenario.keyCount }, (_, i) => {
    const entries = [{ key: "user", value: `user-${String(i).padStart(7, "0")}` }];
    const descriptors = [{ entries, hits: 1, isRefund: false }];
    return decider.prepare({ domain: "bench", descriptors }).charges;
  });
}

async function takeMany(
  store: LimitStore,
  asked: readonly (readonly Charge[])[],
  count: number,
): Promise<void> {
  let next = 0;
  while (next < count) {
    const batch: { charges: readonly Charge[]; multiplicity: number }[] = [];
    for (let place = 0; place < inFlight; place += 1, next += 1) {
      const charges = asked[(next * 7_919) % asked.length] ?? [];
      batch.push({ charges, multiplicity: 1 });
    }
    await store.take(batch, Number.POSITIVE_INFINITY);
  }
}

/** The service's handler over a store, as the app composes it. */
export function createHandler(
  policy: Policy,
  store: LimitStore,
  watched: Watched = {
    observers: [new DecisionSampler({ clock: systemClock, random: systemRandom })],
  },
): UnaryHandler {
  const counters = new DecisionCounters();
  const clock = systemClock;
  const decider = createDecider({ policy, store, counters, watched });
  const random = systemRandom;
  return handlerOf(
    createRateLimitService({
      decider,
      clock,
      random,
      requestCache: {
        keptBytesMax: cacheBounds({ cacheBytesMax: 134_217_728 }).requestCacheBytesMax,
      },
      counters,
      extras: plainExtras,
      isShadow: false,
    }),
  );
}

/** A session of RESP over a store, as the app composes it. */
export function createThrottle(store: LimitStore): AnswersCommands {
  const policy = createPolicy({ name: "", keyCount: 1 });
  return createRespSession({
    decider: createDecider({ policy, store, counters: new DecisionCounters() }),
    isShadow: false,
    digest: sha256,
    isPassword: undefined,
    counts: new RespCounts(),
    version: "",
    onBug: (thrown) => {
      throw thrown;
    },
  });
}

function handlerOf({ methods: [method] }: ServiceHandlers): UnaryHandler {
  if (method?.kind !== "unary") throw new Error("ShouldRateLimit is unary");
  return method.handle;
}

/** What operators see and have changed, and whom global limits are shared with. */
export type Watched = Pick<DeciderParts, "observers" | "overrides" | "regions">;

interface BenchDecider {
  readonly policy: Policy;
  readonly store: LimitStore;
  readonly counters: DecisionCounters;
  readonly watched?: Watched;
}

function createDecider({ policy, store, counters, watched }: BenchDecider): Decider {
  return new Decider({
    ...watched,
    policies: { current: () => policy },
    store,
    createLocalStore: () => new MemoryLimitStore({ clock: systemClock }),
    clock: systemClock,
    counters,
    pressure: new Pressure({
      loopDelayMsMax: 60_000,
      requestsInFlightMax: 1_000_000,
      requestsInFlightBytesMax: 1_000_000_000,
      asksStoreWhenLate: false,
    }),
    storeBudgetMs: 10_000,
    newKeysPerSecondMax: 1_000_000_000,
    switches: noSwitches,
    nearLimitRatio: 0.8,
    digest: sha256,
    replicaCount: () => 1,
    onEvent: () => {},
  });
}

/** A policy with the scenario's rules, whose limits refuse nobody unless it says so. */
export function createPolicy({
  ruleCount = 1,
  hitsPerSecond = 4_294_967_295,
  isGlobal = false,
}: InProcessScenario): Policy {
  const spread = isGlobal ? ", spread: global" : "";
  const limit = `rate_limit: { unit: second, requests_per_unit: ${hitsPerSecond}${spread} }`;
  const others = Array.from(
    { length: ruleCount - 1 },
    (_, i) => `  - { key: rule-${i}, ${limit} }`,
  );
  const own = ["user", "group", ...sharedKeys].map((key) => `  - { key: ${key}, ${limit} }`);
  const text = [
    "apiVersion: headgate.dev/v1alpha1",
    "kind: Policy",
    "metadata: { name: bench }",
    "spec:",
    "  rateLimits:",
    "  - domain: bench",
    "    descriptors:",
    ...[...others, ...own].map((line) => `  ${line}`),
  ].join("\n");
  const parsed = parsePolicy([{ file: "bench.yaml", text }]);
  if (parsed.kind === "problems") throw new Error("the bench's policy is wrong");
  const builder = new PolicyBuilder("bench");
  builder.addDomains(parsed.domains);
  builder.add(parsed.rules);
  return builder.finish();
}
