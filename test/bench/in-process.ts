import { create, toBinary } from "@bufbuild/protobuf";
import { systemClock } from "../../src/app/clock.js";
import { sha256 } from "../../src/app/digest.js";
import type { Clock } from "../../src/core/clock.js";
import { DecisionCounters } from "../../src/decide/counters.js";
import { Decider } from "../../src/decide/decider.js";
import { Pressure } from "../../src/decide/pressure.js";
import { RateLimitRequestSchema } from "../../src/gen/envoy/service/ratelimit/v3/rls_pb.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { createPolicyBuilder, type Policy } from "../../src/policy/policy.js";
import { createRateLimitService } from "../../src/rpc/rls.js";
import type { LimitStore } from "../../src/store/limit-store.js";
import { MemoryLimitStore } from "../../src/store/memory.js";
import type { UnaryAnswer, UnaryHandler } from "../../src/wire/service.js";

/** One row: what a decision costs from a request's bytes to an answer's, without a transport. */
export interface InProcessRow {
  readonly name: string;
  /** CPU of this process for one decision, in microseconds. */
  readonly cpuUsPerDecision: number;
}

/** What a row measures. */
export interface InProcessScenario {
  readonly name: string;
  readonly keyCount: number;
  readonly ruleCount?: number;
  /** Descriptors of a request, each with a limit of its own. */
  readonly limitCount?: number;
  /** Hits a second that each key may take. */
  readonly hitsPerSecond?: number;
}

/** The rows of the bench, each measured in the same process and run. */
export const inProcessScenarios: readonly InProcessScenario[] = [
  { name: "1 key", keyCount: 1 },
  { name: "20,000 keys", keyCount: 20_000 },
  { name: "20,000 keys, two limits", keyCount: 20_000, limitCount: 2 },
  { name: "20,000 keys, 10,000 rules", keyCount: 20_000, ruleCount: 10_000 },
  { name: "1,000,000 keys", keyCount: 1_000_000 },
  { name: "1 key, denied", keyCount: 1, hitsPerSecond: 1 },
];

/** Calls in flight: those of one turn make one batch. */
const inFlight = 200;

/** Measures the work of decisions with the embedded store. */
export async function measureInProcess(
  scenario: InProcessScenario,
  decisionCount: number,
): Promise<InProcessRow> {
  const store = new MemoryLimitStore({ clock: systemClock, keysMax: 4_000_000 });
  const handle = createHandler(createPolicy(scenario), store, systemClock);
  // Every key once, so that the row is about keys in use and not about new ones.
  const warmUpCount = Math.max(decisionCount / 4, scenario.keyCount);
  await decideMany(handle, scenario, warmUpCount);
  const before = process.cpuUsage();
  await decideMany(handle, scenario, decisionCount);
  const used = process.cpuUsage(before);
  await store.close();
  return { name: scenario.name, cpuUsPerDecision: (used.user + used.system) / decisionCount };
}

/** The service's handler over a store, as the app composes it. */
export function createHandler(policy: Policy, store: LimitStore, clock: Clock): UnaryHandler {
  const counters = new DecisionCounters();
  const decider = new Decider({
    policies: { current: () => policy },
    store,
    createLocalStore: () => new MemoryLimitStore({ clock }),
    clock,
    counters,
    pressure: new Pressure({
      loopDelayMsMax: 60_000,
      requestsInFlightMax: 1_000_000,
      asksStoreWhenLate: false,
    }),
    storeBudgetMs: 10_000,
    newKeysPerSecondMax: 1_000_000_000,
    digest: sha256,
    replicaCount: () => 1,
    onEvent: () => {},
  });
  const [method] = createRateLimitService({ decider, clock, counters }).methods;
  if (method?.kind !== "unary") throw new Error("ShouldRateLimit is unary");
  return method.handle;
}

function createPolicy({ ruleCount = 1, hitsPerSecond = 4_294_967_295 }: InProcessScenario): Policy {
  const limit = `rate_limit: { unit: second, requests_per_unit: ${hitsPerSecond} }`;
  const others = Array.from(
    { length: ruleCount - 1 },
    (_, i) => `  - { key: rule-${i}, ${limit} }`,
  );
  const own = ["user", "group"].map((key) => `  - { key: ${key}, ${limit} }`);
  const text = ["domain: bench", "descriptors:", ...others, ...own].join("\n");
  const parsed = parsePolicy([{ file: "bench.yaml", text }]);
  if (parsed.kind === "problems") throw new Error("the bench's policy is wrong");
  const builder = createPolicyBuilder("bench");
  builder.addDomains(parsed.domains);
  builder.add(parsed.rules);
  return builder.finish();
}

/** Digits of a key's number: all messages of a scenario are equally long. */
const numberDigits = 7;

/**
 * Requests as a transport has them: just read, so their bytes are in the processor's cache, however
 * many keys there are. Each place of a turn has its own bytes, and the key's number is written over.
 */
class Requests {
  readonly #messages: readonly Buffer[];
  readonly #numberAt: readonly number[];

  constructor(limitCount: number) {
    const keys = ["user", "group"].slice(0, limitCount);
    const placeholder = "#".repeat(numberDigits);
    const descriptors = keys.map((key) => ({ entries: [{ key, value: `${key}-${placeholder}` }] }));
    const request = create(RateLimitRequestSchema, { domain: "bench", descriptors });
    const template = Buffer.from(toBinary(RateLimitRequestSchema, request));
    this.#messages = Array.from({ length: inFlight }, () => Buffer.from(template));
    this.#numberAt = [...template.toString("latin1").matchAll(/#+/g)].map(({ index }) => index);
  }

  /** The request for a key, at one place of the turn. */
  write(place: number, key: number): Buffer {
    const message = this.#messages[place];
    if (message === undefined) throw new Error("a turn has as many places as calls in flight");
    for (const start of this.#numberAt) {
      let rest = key;
      for (let at = start + numberDigits - 1; at >= start; at -= 1) {
        message[at] = 48 + (rest % 10);
        rest = Math.floor(rest / 10);
      }
    }
    return message;
  }
}

const call = { deadlineMs: Number.POSITIVE_INFINITY, metadata: () => undefined };

/** Waits for all answers of a turn. */
class Turn implements UnaryAnswer {
  #openCount = 0;
  #onEnd: (() => void) | undefined;

  begin(count: number): Promise<void> {
    this.#openCount = count;
    return new Promise((resolve) => {
      this.#onEnd = resolve;
    });
  }

  reply(): void {
    this.#openCount -= 1;
    if (this.#openCount === 0) this.#onEnd?.();
  }

  fail(thrown: unknown): void {
    throw thrown;
  }
}

async function decideMany(
  handle: UnaryHandler,
  { keyCount, limitCount = 1 }: InProcessScenario,
  count: number,
): Promise<void> {
  const requests = new Requests(limitCount);
  const turn = new Turn();
  let next = 0;
  while (next < count) {
    const ended = turn.begin(inFlight);
    for (let place = 0; place < inFlight; place += 1, next += 1) {
      handle(requests.write(place, (next * 7_919) % keyCount), call, turn);
    }
    await ended;
  }
}
