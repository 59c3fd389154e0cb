import { describe, expect, it } from "vitest";
import { HeadgateProtection } from "./goodput-admission.js";
import { GoodputRun, type GoodputWorld } from "./goodput-run.js";

const seed = 20_260_505;

/** Ten workers of 50 ms, whose work goes on for callers that have left without a word. */
const service: GoodputWorld = {
  workerCount: 10,
  serviceMs: 50,
  loadRatio: 2,
  parts: { critical: 0.25, high: 0.2, normal: 0.2 },
  patienceMs: 1_000,
  patience: "unstated",
  isWorkedOff: true,
  changes: [],
};

const noQueue = "admission: {}";
const withQueue = "admission: {queue: {size: 20, maxWait: 300ms}}";

interface LeaverWorld {
  readonly name: string;
  readonly world: Partial<GoodputWorld>;
  /** Where the limit begins. Default 50 */
  readonly initial?: number;
  /** Default: with a queue and without; its wait is a part of what callers have. */
  readonly queues?: readonly string[];
  /** Until it has to be found: what those who left have left behind takes its time, too. */
  readonly settleMs: number;
}

/** In each of these nobody was served any more, ever, while leaving taught nothing. */
const worlds: readonly LeaverWorld[] = [
  {
    name: "a tenth of the workers is left",
    world: { changes: [{ atMs: 20_000, workerRatio: 0.1 }] },
    settleMs: 40_000,
  },
  {
    name: "a tenth of the workers is left, and callers leave after half a second",
    world: { changes: [{ atMs: 20_000, workerRatio: 0.1 }], patienceMs: 500 },
    queues: [noQueue],
    settleMs: 45_000,
  },
  {
    name: "half of them is lost while the limit is far too high",
    world: {
      loadRatio: 10,
      parts: { critical: 0.05, high: 0.2, normal: 0.2 },
      changes: [{ atMs: 2_000, workerRatio: 0.5 }],
      patienceMs: 500,
    },
    queues: [withQueue],
    initial: 1_000,
    settleMs: 27_000,
  },
];

function startRun(blocks: string, more: Partial<GoodputWorld>, from = seed): GoodputRun {
  const world = { ...service, ...more };
  return new GoodputRun(
    world,
    from,
    (calendar) => new HeadgateProtection(calendar, { blocks, seed: from }),
  );
}

describe(`callers who state no deadline and leave, seed ${seed}`, () => {
  it.each(
    worlds.flatMap(({ queues = [noQueue, withQueue], ...world }) =>
      queues.map((queue) => ({ ...world, queue })),
    ),
  )("are served again where $name: $queue", ({ world, initial = 50, settleMs, queue }) => {
    const run = startRun(`${queue}, concurrency: {limits: {initial: ${initial}}}`, world);
    run.span(settleMs);
    const { usefulRatio, avoidablyLateCount, admittedCount } = run.span(20_000);
    expect(usefulRatio).toBeGreaterThan(0.9);
    expect(avoidablyLateCount).toBeLessThan(0.1 * admittedCount);
  });

  it("are let in again soon after nobody was served at all", () => {
    const changes = [
      { atMs: 20_000, workerRatio: 0 },
      { atMs: 30_000, workerRatio: 1 },
    ];
    const run = startRun(noQueue, { changes });
    run.span(35_000);
    expect(run.span(10_000).usefulRatio).toBeGreaterThan(0.95);
  });

  it("cost a service nothing that has room, where most leave for reasons of their own", () => {
    // As where each keystroke in a search field takes back the request of the one before.
    const run = startRun(noQueue, {
      loadRatio: 0.5,
      impatient: { ratio: 0.8, patienceMs: 30 },
      isWorkedOff: false,
    });
    const { asked, admittedCount } = run.span(60_000);
    const askedCount = Object.values(asked).reduce((sum, count) => sum + count, 0);
    expect(admittedCount).toBeGreaterThan(0.999 * askedCount);
  });
});

/**
 * Half of the workers goes as the load jumps, from a limit of 50 that was never reached. Critical
 * requests fill what is left, and passed the limit by a queue longer than their patience: 66 and
 * 59 % were served in these ten seconds, and some seconds nothing.
 */
describe("critical callers who state no deadline and leave", () => {
  it.each([
    { queue: noQueue, ratioMin: 0.9 },
    { queue: withQueue, ratioMin: 0.8 },
  ])("do not fill a service that has lost half of its workers: $queue", ({ queue, ratioMin }) => {
    const ratios = [seed, 1, 2, 3, 4, 5].map((from) => {
      const changes = [{ atMs: 20_000, workerRatio: 0.5, loadRatio: 2 }];
      const run = startRun(queue, { serviceMs: 100, loadRatio: 0.5, changes }, from);
      run.span(25_000);
      return run.span(10_000).usefulRatio;
    });
    expect(ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length).toBeGreaterThan(ratioMin);
  });
});
