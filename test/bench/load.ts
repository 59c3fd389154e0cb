import { createHistogram, performance, type RecordableHistogram } from "node:perf_hooks";
import type { CallOutcome } from "./call-outcome.js";
import { connectClient, type LoadCalls, type LoadClient } from "./load-client.js";

/** What a load process is told, as JSON on its standard input. */
export interface LoadOrder {
  readonly port: number;
  readonly calls: LoadCalls;
  readonly connectionCount: number;
  readonly pace: LoadPace;
  /** Time before it, in which calls are made and not measured: everybody is cold. */
  readonly warmUpMs: number;
  /** Calls before that, as fast as they go, however long they take. Default 0. */
  readonly warmUpCalls?: number;
  readonly durationMs: number;
}

/**
 * When calls are made. Closed: so many are in flight at any time. Open: so many come a second, each
 * at a time of its own (as from many clients that know nothing of each other), whatever has become
 * of those before; a call's time counts from when it was due.
 */
export type LoadPace =
  | { readonly kind: "closed"; readonly inFlightPerConnection: number }
  | { readonly kind: "open"; readonly callsPerSecond: number; readonly seed: number };

/** What it prints when the measurement begins. */
export const measuringMark = "measuring\n";

/** What it prints when it is done, as JSON. */
export interface LoadReport {
  readonly callCount: number;
  readonly failedCount: number;
  readonly deniedCount: number;
  readonly elapsedMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Calls open at once on one connection; a call that is due above waits, and its time counts. */
const openCallsMax = 900;

/** How long an open load sleeps where no call is due, in milliseconds. */
const napMs = 0.02;

/** How long the last calls may take before they have failed, in milliseconds. */
const lastCallsMsMax = 5_000;

/** How calls warm up, and how long before they are counted, in milliseconds. */
const warmUpPace = { kind: "closed", inFlightPerConnection: 50 } as const;
const warmUpStepMs = 100;

/** Makes the calls of an order, and measures each; `onMeasure` is told when that begins. */
export async function runLoad(order: LoadOrder, onMeasure: () => void): Promise<LoadReport> {
  const clients = await Promise.all(
    Array.from({ length: order.connectionCount }, () => connectClient(order.port, order.calls)),
  );
  const { pace } = order;
  const run = (tally: Tally, durationMs: number): Promise<void> =>
    pace.kind === "open"
      ? runOpen({ clients, tally, pace, durationMs })
      : runClosed({ clients, tally, pace, durationMs });
  const warmUp = new Tally();
  const { warmUpCalls = 0 } = order;
  while (warmUp.counts().callCount < warmUpCalls) {
    await runClosed({ clients, tally: warmUp, pace: warmUpPace, durationMs: warmUpStepMs });
  }
  await run(warmUp, order.warmUpMs);
  onMeasure();
  const tally = new Tally();
  const startMs = performance.now();
  await run(tally, order.durationMs);
  const elapsedMs = performance.now() - startMs;
  for (const client of clients) client.close();
  return { ...tally.counts(), elapsedMs };
}

interface Run<Kind extends LoadPace["kind"]> {
  readonly clients: readonly LoadClient[];
  readonly tally: Tally;
  readonly pace: Extract<LoadPace, { readonly kind: Kind }>;
  readonly durationMs: number;
}

async function runClosed({ clients, tally, pace, durationMs }: Run<"closed">): Promise<void> {
  const endMs = performance.now() + durationMs;
  await Promise.all(
    clients.flatMap((client, connection) =>
      Array.from({ length: pace.inFlightPerConnection }, (_, slot) => {
        // A stride that is odd and prime to most counts, so that connections do not march in step.
        let at = connection * 7_919 + slot * 104_729;
        return new Promise<void>((resolve) => {
          const next = (): void => {
            const sentMs = performance.now();
            if (sentMs >= endMs) {
              resolve();
              return;
            }
            at += 1;
            client.call(at, (outcome) => {
              tally.add(outcome, performance.now() - sentMs);
              next();
            });
          };
          next();
        });
      }),
    ),
  );
}

function runOpen({ clients, tally, pace, durationMs }: Run<"open">): Promise<void> {
  const random = createRandom(pace.seed);
  const meanGapMs = 1_000 / pace.callsPerSecond;
  const nextGapMs = (): number => -Math.log(1 - random()) * meanGapMs;
  const openCounts = clients.map(() => 0);
  const startMs = performance.now();
  let dueMs = startMs + nextGapMs();
  let at = 0;
  const sendDue = (nowMs: number): void => {
    while (dueMs <= Math.min(nowMs, startMs + durationMs)) {
      const index = at % clients.length;
      if ((openCounts[index] ?? 0) >= openCallsMax) return;
      openCounts[index] = (openCounts[index] ?? 0) + 1;
      const wasDueMs = dueMs;
      clients[index]?.call(at * 7_919, (outcome) => {
        openCounts[index] = (openCounts[index] ?? 0) - 1;
        tally.add(outcome, performance.now() - wasDueMs);
      });
      at += 1;
      dueMs += nextGapMs();
    }
  };
  return new Promise((resolve) => {
    // Timers are late by more than a fast server takes for its answer, and who never sleeps takes
    // a core from the server: so it naps, and a call's time is off by a nap at most.
    const nap = new Int32Array(new SharedArrayBuffer(4));
    const look = (): void => {
      const nowMs = performance.now();
      sendDue(nowMs);
      const isOver = dueMs > startMs + durationMs;
      const openCount = openCounts.reduce((sum, count) => sum + count, 0);
      const isLate = nowMs > startMs + durationMs + lastCallsMsMax;
      if (isLate) for (let i = 0; i < openCount; i += 1) tally.add("failed", lastCallsMsMax);
      if ((isOver && openCount === 0) || isLate) {
        resolve();
        return;
      }
      if (dueMs - nowMs > napMs) Atomics.wait(nap, 0, 0, napMs);
      setImmediate(look);
    };
    look();
  });
}

/** What became of the calls. */
class Tally {
  readonly #histogram: RecordableHistogram = createHistogram();
  #callCount = 0;
  #failedCount = 0;
  #deniedCount = 0;

  add(outcome: CallOutcome, tookMs: number): void {
    this.#histogram.record(Math.max(1, Math.round(tookMs * 1_000)));
    this.#callCount += 1;
    if (outcome === "failed") this.#failedCount += 1;
    else if (outcome === "denied") this.#deniedCount += 1;
  }

  counts(): Omit<LoadReport, "elapsedMs"> {
    return {
      callCount: this.#callCount,
      failedCount: this.#failedCount,
      deniedCount: this.#deniedCount,
      p50Ms: this.#histogram.percentile(50) / 1_000,
      p99Ms: this.#histogram.percentile(99) / 1_000,
    };
  }
}

/** Numbers from 0 below 1 that a seed gives again: every row gets the same calls, as timely. */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    // A linear congruential generator: gaps need no better one. Source: Knuth, volume 2, 3.3.4.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

if (process.argv[2] === "run") {
  let text = "";
  for await (const chunk of process.stdin) text += String(chunk);
  const order = JSON.parse(text) as LoadOrder;
  const report = await runLoad(order, () => process.stdout.write(measuringMark));
  process.stdout.write(JSON.stringify(report));
}
