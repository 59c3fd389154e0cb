import { createRequire } from "node:module";
import Bottleneck from "bottleneck";
import {
  bulkhead,
  ConsecutiveBreaker,
  circuitBreaker,
  ExponentialBackoff,
  handleAll,
  retry,
  TimeoutStrategy,
  timeout,
  wrap,
} from "cockatiel";
import PQueue from "p-queue";
import { systemClock } from "../../src/app/base/clock.js";
import { createAdmission } from "../../src/client/create-admission.js";
import { createLimiter } from "../../src/client/limiter.js";
import { createServerAdmission } from "../../src/client/server/server-admission.js";
import { layOut } from "./report.js";

/** It has no types. */
const CircuitBreaker: new (
  work: () => Promise<number>,
  options: { readonly timeout: number | false; readonly capacity: number },
) => { fire(): Promise<number> } = createRequire(import.meta.url)("opossum");

/** What one call costs: made, and waited for. */
interface CallRow {
  readonly name: string;
  readonly call: () => Promise<unknown>;
}

/** Work that is done at once: what is left is the price of the library around it. */
const work = async (): Promise<number> => 1;

/** More than there are calls at once. */
const limit = 1_000;

/** The most that the fast path is to cost. */
const targetUs = 2;

/** Calls and time of a sample, at most; some libraries take milliseconds for a call. */
const [sampleCalls, sampleMs, callsPerLook] = [5_000, 50, 50];

/**
 * What a call costs with admission in the caller that lets it pass, next to other libraries of its
 * kind: rounds of all rows in turn, and the least of each.
 */
export async function tellClient(measureMs: number): Promise<string> {
  const rows = callRows();
  const leastUs = new Map(rows.map(({ name }) => [name, Number.POSITIVE_INFINITY]));
  const endMs = systemClock.monotonicMs() + measureMs * rows.length;
  do {
    for (const { name, call } of rows) {
      leastUs.set(name, Math.min(leastUs.get(name) ?? 0, await costUs(call)));
    }
  } while (systemClock.monotonicMs() < endMs);
  const bareUs = leastUs.get("no library") ?? 0;
  const lines = [...leastUs].map(([name, us]) => [name, (us - bareUs).toFixed(2)]);
  const most = Math.max(...lines.map(([name = "", us]) => (isFastPath(name) ? Number(us) : 0)));
  const verdict = most <= targetUs ? "met" : "missed";
  return [
    layOut([["a call that passes", "us more than without"], ...lines]),
    "",
    `fast path at most ${targetUs} us: ${verdict} (${most.toFixed(2)})`,
  ].join("\n");
}

/** Rows that are held to the target: those without a time, which is a timer elsewhere too. */
function isFastPath(name: string): boolean {
  return name.startsWith("headgate") && !name.includes("time");
}

async function costUs(call: () => Promise<unknown>): Promise<number> {
  const startMs = systemClock.monotonicMs();
  let calls = 0;
  let ms = 0;
  while (calls < sampleCalls && ms < sampleMs) {
    for (let i = 0; i < callsPerLook; i += 1) await call();
    calls += callsPerLook;
    ms = systemClock.monotonicMs() - startMs;
  }
  return (ms * 1_000) / calls;
}

function callRows(): readonly CallRow[] {
  return [{ name: "no library", call: work }, ...ownRows(), ...otherRows()];
}

function ownRows(): readonly CallRow[] {
  const limiter = createLimiter({ initial: limit });
  const permits = createAdmission({ name: "permits", concurrency: { initial: limit } });
  const parts = { concurrency: { initial: limit }, queue: {}, throttle: {}, breaker: {} } as const;
  const all = createAdmission({ ...parts, name: "all", retry: {}, hedge: {} });
  const timed = createAdmission({
    ...{ ...parts, name: "timed", retry: {}, hedge: {} },
    deadline: { timeoutMs: 1_000 },
  });
  const service = createServerAdmission({ name: "service", maxInFlight: limit });
  const request = {
    ...{ method: "GET", path: "/orders", remoteAddress: undefined },
    header: () => undefined,
  };
  return [
    {
      name: "headgate: a limiter",
      call: async () => {
        const permit = await limiter.acquire();
        await work();
        permit.release();
      },
    },
    { name: "headgate: adaptive concurrency", call: () => permits.run(work) },
    { name: "headgate: every part but a deadline", call: () => all.run(work) },
    { name: "headgate: every part, and a time to be ready", call: () => timed.run(work) },
    {
      name: "headgate: admission in a service",
      call: async () => {
        const answer = service.begin(request);
        await work();
        if (answer.kind === "admitted") answer.permit.end("completed");
      },
    },
  ];
}

function otherRows(): readonly CallRow[] {
  const hold = bulkhead(limit);
  const breaker = circuitBreaker(handleAll, {
    halfOpenAfter: 5_000,
    breaker: new ConsecutiveBreaker(5),
  });
  const retries = retry(handleAll, { maxAttempts: 3, backoff: new ExponentialBackoff() });
  const wrapped = wrap(retries, breaker, hold);
  const timed = wrap(wrapped, timeout(1_000, TimeoutStrategy.Aggressive));
  const fire = new CircuitBreaker(work, { timeout: false, capacity: limit });
  const fireTimed = new CircuitBreaker(work, { timeout: 1_000, capacity: limit });
  const queue = new PQueue({ concurrency: limit });
  const bottleneck = new Bottleneck({ maxConcurrent: limit });
  return [
    { name: "cockatiel: bulkhead", call: () => hold.execute(work) },
    { name: "cockatiel: retry, breaker, bulkhead", call: () => wrapped.execute(work) },
    { name: "cockatiel: the same, and a timeout", call: () => timed.execute(work) },
    { name: "opossum: breaker, capacity", call: () => fire.fire() },
    { name: "opossum: the same, and a timeout", call: () => fireTimed.fire() },
    { name: "p-queue: concurrency", call: () => queue.add(work) },
    { name: "bottleneck: maxConcurrent", call: () => bottleneck.schedule(work) },
  ];
}
