import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { FakeRandom } from "./fake-random.js";
import type { SaturableSettings, SaturableStats } from "./saturable-upstream.js";

/**
 * A program of its own: an upstream of c workers behind one queue without end, first come first
 * served, with exponential service times. As servers do, it works on for clients that have left.
 *
 * Its workers keep an ideal time: a timer that comes late delays an answer, and never the work
 * behind it, so that its capacity is c over the mean service time and nothing else. Started with
 * its settings as JSON; prints its port once it listens.
 */
const settings: SaturableSettings = JSON.parse(process.argv[2] ?? "{}");

interface Job {
  readonly response: ServerResponse;
  readonly serviceMs: number;
  readonly arrivedMs: number;
  readonly attemptOf: string;
}

const random = new FakeRandom(settings.seed);
const queue: Job[] = [];
/** When each worker is free, on the ideal time. */
let freeAtMs: number[] = new Array(settings.workerCount).fill(0);
let runningCount = 0;
const stats = {
  arrivedCount: 0,
  servedCount: 0,
  wastedCount: 0,
  inFlightCount: 0,
  inFlightMost: 0,
  requestNames: new Map<string, number>(),
};

const server = createServer((request, response) => {
  request.resume();
  const url = new URL(request.url ?? "/", "http://upstream");
  if (url.pathname === "/-/stats") return void response.end(JSON.stringify(statsNow()));
  if (url.pathname === "/-/workers") {
    setWorkers(Number(url.searchParams.get("count")));
    return void response.end();
  }
  if (url.pathname === "/-/fresh-peak") {
    stats.inFlightMost = stats.inFlightCount;
    return void response.end();
  }
  stats.arrivedCount += 1;
  stats.inFlightCount += 1;
  stats.inFlightMost = Math.max(stats.inFlightMost, stats.inFlightCount);
  const name = String(request.headers["x-load-request"] ?? "");
  if (name !== "") stats.requestNames.set(name, (stats.requestNames.get(name) ?? 0) + 1);
  const serviceMs = -Math.log(1 - random.next()) * settings.meanServiceMs;
  queue.push({ response, serviceMs, arrivedMs: performance.now(), attemptOf: name });
  work();
});

/** Gives jobs to workers, as far as there are workers. */
function work(): void {
  while (runningCount < freeAtMs.length) {
    const job = queue.shift();
    if (job === undefined) return;
    runningCount += 1;
    const worker = freeAtMs.indexOf(Math.min(...freeAtMs));
    const startMs = Math.max(job.arrivedMs, freeAtMs[worker] ?? 0);
    const endMs = startMs + job.serviceMs;
    freeAtMs[worker] = endMs;
    setTimeout(() => finish(job), Math.max(0, endMs - performance.now()));
  }
}

function finish({ response, serviceMs }: Job): void {
  runningCount -= 1;
  stats.inFlightCount -= 1;
  if (response.destroyed) stats.wastedCount += 1;
  else stats.servedCount += 1;
  if (settings.reportsLoad) {
    const utilization = Math.min(1, (runningCount + queue.length) / freeAtMs.length);
    response.setHeader("endpoint-load-metrics", `JSON {"cpu_utilization":${utilization}}`);
  }
  // The load adds up what its workers did for callers who got an answer in time.
  response.setHeader("x-work-ms", serviceMs);
  response.end("served\n");
  work();
}

function setWorkers(count: number): void {
  const now = performance.now();
  const kept = freeAtMs.sort((a, b) => a - b).slice(0, count);
  freeAtMs = [...kept, ...new Array(Math.max(0, count - kept.length)).fill(now)];
  work();
}

function statsNow(): SaturableStats {
  const { requestNames, ...counts } = stats;
  let attemptCount = 0;
  for (const count of requestNames.values()) attemptCount += count;
  return {
    ...counts,
    queuedCount: queue.length,
    requestCount: requestNames.size,
    attemptCount,
  };
}

// Envoy must never find a connection closed that it is about to use.
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
