import { describe, expect, it } from "vitest";
import { type HeadgateOrder, HeadgateProtection } from "./goodput-admission.js";
import { GoodputRun, type GoodputSpan, type GoodputWorld } from "./goodput-run.js";

const seed = 20_260_505;

/** Ten workers of 50 ms: 200 requests a second; callers wait for a second. */
const tenWorkers = { workerCount: 10, serviceMs: 50, patienceMs: 1_000, changes: [] };

function startRun(
  blocks: string,
  world: GoodputWorld,
  more: Partial<HeadgateOrder> = {},
): GoodputRun {
  const order = { blocks, seed, ...more };
  return new GoodputRun(world, order.seed, (calendar) => new HeadgateProtection(calendar, order));
}

function overloaded(blocks: string, loadRatio: number, critical: number): GoodputSpan {
  const other = (1 - critical) / 3;
  const parts = { critical, high: other, normal: other };
  const run = startRun(blocks, { ...tenWorkers, loadRatio, parts });
  // Until laws have found where they stay.
  run.span(20_000);
  return run.span(40_000);
}

const queueing =
  "admission: {caller: {header: x-user}, maxInFlight: 12, queue: {size: 50, maxWait: 500ms}}";

const everything = [
  "admission: {caller: {header: x-user}, maxInFlight: 12, queue: {size: 100, maxWait: 900ms}",
  "estimatedWait: {max: 700ms, sigmoid: {midpoint: 300ms, slope: 15}}",
  "gate: {}, throttle: {per: caller}, load: {queueWait: 900ms}}",
].join(", ");

const learning = "admission: {caller: {header: x-user}}";

describe(`admission as a whole, seed ${seed}`, () => {
  it.each([
    { loadRatio: 3, criticalRatio: 0.2 },
    { loadRatio: 10, criticalRatio: 0.06 },
  ])("keeps a service with a queue busy and loses nobody critical at $loadRatio x", (load) => {
    const span = overloaded(queueing, load.loadRatio, load.criticalRatio);
    expect(span.goodputRatio).toBeGreaterThan(0.95);
    expect(span.servedRatio.critical).toBeGreaterThan(0.999);
    expect(span.servedRatio.high).toBeGreaterThan(0.1);
    expect(span.servedRatio.low).toBeLessThan(0.01);
    // A wait of 500 ms and what is served longest.
    expect(span.p99Ms).toBeLessThan(750);
  });

  it("does so with every block at once, which do not work against each other", () => {
    const span = overloaded(everything, 3, 0.2);
    expect(span.goodputRatio).toBeGreaterThan(0.95);
    expect(span.servedRatio.critical).toBeGreaterThan(0.999);
  });

  it("finds the limit by itself where a policy names none, and sheds class by class", () => {
    const span = overloaded(learning, 3, 0.2);
    expect(span.goodputRatio).toBeGreaterThan(0.95);
    expect(span.p99Ms).toBeLessThan(400);
    const { critical, high, normal, low } = span.servedRatio;
    expect(critical).toBeGreaterThan(0.995);
    expect(critical).toBeGreaterThan(high);
    expect(high).toBeGreaterThan(normal);
    expect(normal).toBeGreaterThan(low);
  });

  it.each(Object.entries({ queueing, everything, learning }))(
    "leaves a service alone that has room: %s",
    (_name, blocks) => {
      const { servedRatio, goodputRatio } = overloaded(blocks, 0.7, 0.2);
      expect(goodputRatio).toBeGreaterThan(0.65);
      for (const ratio of Object.values(servedRatio)) expect(ratio).toBeGreaterThan(0.97);
    },
  );

  it.each([
    ["admission: {}", 0.97],
    ["admission: {queue: {size: 20, maxWait: 300ms}}", 0.9],
  ])("keeps critical requests when half of the workers are lost: %s", (blocks, goodputMin) => {
    const run = startRun(blocks, {
      ...tenWorkers,
      loadRatio: 3,
      parts: { critical: 0.1, high: 0.2, normal: 0.4 },
      changes: [{ atMs: 30_000, workerRatio: 0.5 }],
    });
    run.span(30_000);
    // They need 60 % of the half.
    expect(run.span(5_000).servedRatio.critical).toBeGreaterThan(0.97);
    const later = run.span(30_000);
    expect(later.servedRatio.critical).toBeGreaterThan(0.995);
    expect(later.goodputRatio).toBeGreaterThan(goodputMin);
    expect(later.lateRatio).toBeLessThan(0.001);
  });

  it.each(["admission: {}", "admission: {queue: {size: 20, maxWait: 300ms}}"])(
    "does so on every day, and wastes nothing of what is left: %s",
    (blocks) => {
      for (let day = seed; day < seed + 4; day += 1) {
        const run = startRun(
          blocks,
          {
            ...tenWorkers,
            loadRatio: 3,
            parts: { critical: 0.1, high: 0.2, normal: 0.4 },
            changes: [{ atMs: 30_000, workerRatio: 0.5 }],
          },
          { seed: day },
        );
        // From the limit of 50 that it begins with.
        run.span(3_000);
        for (const spanMs of [27_000, 5_000, 30_000]) {
          const { usefulRatio, servedRatio, lateRatio } = run.span(spanMs);
          expect(usefulRatio, `seed ${day}`).toBeGreaterThan(0.97);
          expect(servedRatio.critical, `seed ${day}`).toBeGreaterThan(0.999);
          expect(lateRatio, `seed ${day}`).toBeLessThan(0.001);
        }
      }
    },
  );

  it("takes stalls of its own event loop for no latency of the service", () => {
    // Stops of 400 ms look like requests that take eight times as long.
    const world = { ...tenWorkers, loadRatio: 3, parts: { critical: 0.1, high: 0.2, normal: 0.4 } };
    const stalls = { everyMs: 2_000, lengthMs: 400 };
    const run = startRun("admission: {}", world, { stalls });
    const calm = startRun("admission: {}", world);
    run.span(30_000);
    calm.span(30_000);
    const { limit } = run.span(30_000);
    expect(limit).toBeGreaterThan(0.75 * calm.span(30_000).limit);
    expect(limit).toBeLessThan(1.5 * calm.span(1).limit);
  });

  it("lets critical requests that could fill the service alone teach it no queue", () => {
    const run = startRun("admission: {}", {
      ...tenWorkers,
      loadRatio: 10,
      parts: { critical: 0.1, high: 0.2, normal: 0.4 },
    });
    run.span(30_000);
    const span = run.span(30_000);
    expect(span.goodputRatio).toBeGreaterThan(0.95);
    expect(span.servedRatio.critical).toBeGreaterThan(0.8);
    expect(span.p99Ms).toBeLessThan(350);
  });
});
