import { createRequire } from "node:module";
import Bottleneck from "bottleneck";
import {
  bulkhead,
  ConsecutiveBreaker,
  circuitBreaker,
  handleAll,
  retry,
  TimeoutStrategy,
  timeout,
  wrap,
} from "cockatiel";
import PQueue from "p-queue";
import { createAdmission } from "../../src/client/create-admission.js";
import { layOut } from "./report.js";

type Work = () => Promise<number>;

/** It has no types of its own. */
const CircuitBreaker = createRequire(import.meta.url)("opossum") as new (
  work: Work,
  options: { readonly timeout: number | false; readonly capacity?: number },
) => { fire(): Promise<number> };

/** A library with its settings, and how it makes a call. */
interface Row {
  readonly name: string;
  readonly call: Work;
}

const concurrency = 200;

/** Calls that are in flight at once in the second column. */
const atOnce = 100;

/** Rounds of all rows in turn; each row says the median. */
const roundCount = 7;

/** The longest turn of a row: one of the libraries waits for a timer in each call. */
const turnMsMax = 200;

/** What of an admission's parts the others do not have. */
const lacking = `None of the others has an adaptive limit, an adaptive throttle, a retry budget,
hedges, or deadlines that the service is told.
opossum: no retries, no queue. cockatiel: no priorities. p-queue: no bound of its queue, no retries,
no breaker. bottleneck: no breaker.`;

/**
 * CPU that libraries add to a call whose work does nothing, in turns of so many thousand calls. CPU
 * and not time: other work on the machine does not count.
 */
export async function tellClientLibrary(thousands: number): Promise<string> {
  if (!(thousands >= 1)) throw new Error("--client takes a number from 1");
  const rows = libraries(async () => 1).map((row) => ({ ...row, inTurnUs: [], atOnceUs: [] }));
  const sides: readonly (Row & { inTurnUs: number[]; atOnceUs: number[] })[] = rows;
  const count = thousands * 1_000;
  for (const { call } of sides) await cpuUsPerCall(call, count);
  for (let round = 0; round < roundCount; round += 1) {
    for (const { call, inTurnUs, atOnceUs } of sides) {
      inTurnUs.push(await cpuUsPerCall(call, count));
      const calls = (): Promise<unknown> => Promise.all(Array.from({ length: atOnce }, call));
      atOnceUs.push((await cpuUsPerCall(calls, count / atOnce)) / atOnce);
    }
  }
  const cells = sides.map(({ name, inTurnUs, atOnceUs }) => [
    name,
    median(inTurnUs).toFixed(2),
    median(atOnceUs).toFixed(2),
  ]);
  return `${layOut([["CPU us a call", "in turn", `${atOnce} at once`], ...cells])}\n\n${lacking}`;
}

function libraries(work: Work): readonly Row[] {
  const all = { throttle: {}, breaker: {}, retry: {}, hedge: {}, queue: {} };
  // As low as it may be, so that no probe of the law refuses calls here.
  const limit = { law: "gradient", initial: concurrency, min: concurrency } as const;
  const nothing = createAdmission({ name: "a" });
  const limited = createAdmission({ name: "a", concurrency: limit });
  const whole = createAdmission({ name: "a", concurrency: limit, ...all });
  const breaker = new CircuitBreaker(work, { timeout: false });
  const timed = new CircuitBreaker(work, { timeout: 1_000, capacity: concurrency });
  const opened = { halfOpenAfter: 5_000, breaker: new ConsecutiveBreaker(5) };
  const bulk = bulkhead(concurrency, 100);
  const policies = wrap(
    retry(handleAll, { maxAttempts: 3 }),
    circuitBreaker(handleAll, opened),
    bulk,
  );
  const limitedTime = wrap(policies, timeout(1_000, TimeoutStrategy.Aggressive));
  const queue = new PQueue({ concurrency });
  const bottleneck = new Bottleneck({ maxConcurrent: concurrency });
  return [
    { name: "nothing", call: work },
    { name: "headgate, no part", call: () => nothing.run(work) },
    { name: "headgate, concurrency", call: () => limited.run(work) },
    { name: "headgate, all parts", call: () => whole.run(work) },
    {
      name: "headgate, all parts, timeout",
      call: () => whole.run(work, { timeoutMs: 1_000 }),
    },
    { name: "opossum, breaker", call: () => breaker.fire() },
    {
      name: "opossum, breaker, capacity, timeout",
      call: () => timed.fire(),
    },
    { name: "cockatiel, bulkhead", call: () => bulk.execute(work) },
    {
      name: "cockatiel, retry, breaker, bulkhead",
      call: () => policies.execute(work),
    },
    {
      name: "cockatiel, the same, timeout",
      call: () => limitedTime.execute(work),
    },
    {
      name: "p-queue, concurrency",
      call: () => queue.add(work),
    },
    {
      name: "bottleneck, concurrency",
      call: () => bottleneck.schedule(work),
    },
  ];
}

async function cpuUsPerCall(call: () => Promise<unknown>, count: number): Promise<number> {
  const before = process.cpuUsage();
  const endMs = performance.now() + turnMsMax;
  let done = 0;
  while (done < count && performance.now() < endMs) {
    await call();
    done += 1;
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / done;
}

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}
