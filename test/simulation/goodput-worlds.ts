import { FakeRandom } from "../support/fake-random.js";
import {
  type GoodputChange,
  type GoodputWorld,
  type ServiceKind,
  serviceKinds,
} from "./goodput-run.js";

/** What a policy says of admission in a matrix's world. */
export const goodputPolicies = ["learned", "queue", "maxInFlight", "replicas"] as const;

/** What happens in the middle. */
export const goodputEvents = [
  "nothing",
  "halved",
  "doubled",
  "tenth",
  "zeroAndBack",
  "loadJump",
] as const;

/** What happens in worlds of a set of their own. */
export const zoneEvent = "zoneLost";

/** A world of the goodput matrix: what varies, and what follows from that. */
export interface MatrixWorld {
  readonly seed: number;
  readonly policy: (typeof goodputPolicies)[number];
  /** Where the learned limit begins. */
  readonly initial: 1 | 1_000;
  readonly event: (typeof goodputEvents)[number] | typeof zoneEvent;
  readonly service: ServiceKind;
  readonly disturbance: "none" | "warmUp" | "pauses";
  /** What critical requests need of the capacity that there is when it is looked at. */
  readonly criticalDemandRatio: number;
  readonly world: GoodputWorld;
  /** Until laws have found where they stay, with what has changed. */
  readonly settleMs: number;
  /** What is looked at then. */
  readonly lookMs: number;
}

/** Service times of patience that callers have. */
const patienceServiceCount = 20;

/**
 * A world by its seed. Times follow from the service's pace: limits may settle for 20 s, 600
 * requests that are served and 60 of them in a row, whichever is longest, and so they may after a
 * change, but for 5 s, 300 and 20. What is looked at lasts at least 15 s, for 1,500 requests and 20
 * in a row.
 *
 * @param arrivalCountMax worlds with more are drawn again, with another draw of the same seed
 * @param event what happens in it. Default: drawn
 */
export function drawMatrixWorld(
  seed: number,
  arrivalCountMax: number,
  event?: MatrixWorld["event"],
): MatrixWorld {
  const random = new FakeRandom(seed * 7_919);
  for (;;) {
    const world = drawOne(seed, random, event);
    const isDrawn = event === undefined || world.event === event;
    if (isDrawn && arrivalCountOf(world) <= arrivalCountMax) return world;
  }
}

/** Requests that all runs of a world have at least: few of them say little, by chance. */
const runsArrivalCount = 10_000;

/** Seeds of a world's runs, each with arrivals and work of its own: more where a run has few. */
export function runSeedsOf(one: MatrixWorld): readonly number[] {
  const count = Math.max(1, Math.round(runsArrivalCount / arrivalCountOf(one)));
  return Array.from({ length: count }, (_, i) => one.seed + 100_000 * i);
}

/** A world in a line, for people. */
export function titleOf(one: MatrixWorld): string {
  const { seed, world, service, event, disturbance, policy, initial, criticalDemandRatio } = one;
  const { workerCount, serviceMs, loadRatio } = world;
  const parts = [
    `${workerCount} x ${serviceMs} ms ${service}`,
    `${loadRatio}x`,
    `${policy} from ${initial}`,
    `critical ${criticalDemandRatio.toFixed(2)}`,
    event,
    disturbance,
  ];
  return `seed ${seed}: ${parts.join(", ")}`;
}

function drawOne(seed: number, random: FakeRandom, wanted?: MatrixWorld["event"]): MatrixWorld {
  const workerCount = pick(random, [1, 10, 200]);
  const serviceMs = pick(random, [1, 50, 2_000]);
  const service = pick(random, serviceKinds);
  const loadRatio = pick(random, [1.1, 1.5, 3, 10]);
  const criticalRatio = pick(random, [0.1, 0.4, 0.7]);
  const policy = pick(random, goodputPolicies);
  const initial = pick(random, [1, 1_000] as const);
  // Half of the worlds stay as they are.
  const drawn = pick(random, [
    ...goodputEvents,
    "nothing",
    "nothing",
    "nothing",
    "nothing",
  ] as const);
  const possible = wanted ?? drawn;
  const event = workerCount === 1 && possible !== "loadJump" ? "nothing" : possible;
  const disturbance = pick(random, ["none", "none", "warmUp", "pauses"] as const);
  const paceMs = serviceMs / workerCount;
  const firstMs = Math.max(20_000, 600 * paceMs, 60 * serviceMs);
  const laterRatio = workerRatioAfter(event);
  const followMs = Math.max(5_000, (300 * paceMs) / laterRatio, 20 * serviceMs);
  const lookMs = Math.max(15_000, (1_500 * paceMs) / laterRatio, 20 * serviceMs);
  const { changes, settleMs } = changesOf(event, { firstMs, followMs, loadRatio });
  const critical = criticalRatio / (event === "loadJump" ? 10 : loadRatio);
  const other = (1 - critical) / 3;
  return {
    seed,
    policy,
    initial,
    event,
    service,
    disturbance,
    criticalDemandRatio: criticalRatio / laterRatio,
    world: {
      workerCount,
      serviceMs,
      service,
      loadRatio: event === "loadJump" ? 0.5 : loadRatio,
      parts: { critical, high: other, normal: other },
      patienceMs: Math.max(1_000, patienceServiceCount * serviceMs),
      changes,
      ...(disturbance === "warmUp" ? { warmUpMs: firstMs / 2 } : {}),
      ...(disturbance === "pauses" ? { pauses: { everyMs: 5_000, lengthMs: 200 } } : {}),
    },
    settleMs,
    lookMs,
  };
}

interface ChangeTimes {
  readonly firstMs: number;
  readonly followMs: number;
  readonly loadRatio: number;
}

function changesOf(
  event: MatrixWorld["event"],
  { firstMs, followMs }: ChangeTimes,
): { readonly changes: readonly GoodputChange[]; readonly settleMs: number } {
  const settleMs = firstMs + followMs;
  switch (event) {
    case "nothing":
      return { changes: [], settleMs: firstMs };
    case "loadJump":
      return { changes: [{ atMs: firstMs, loadRatio: 10 }], settleMs };
    case "zeroAndBack": {
      const backMs = firstMs + 10_000;
      const changes = [
        { atMs: firstMs, workerRatio: 0 },
        { atMs: backMs, workerRatio: 1 },
      ];
      return { changes, settleMs: backMs + followMs };
    }
    default: {
      const isZoneLost = event === zoneEvent;
      const change = { atMs: firstMs, workerRatio: workerRatioAfter(event), isZoneLost };
      return { changes: [change], settleMs };
    }
  }
}

/** Workers that there are in the end, as a part of those at the start. */
export function workerRatioAfter(event: MatrixWorld["event"]): number {
  if (event === "halved" || event === zoneEvent) return 0.5;
  if (event === "doubled") return 2;
  return event === "tenth" ? 0.1 : 1;
}

/** Requests that come in all. */
function arrivalCountOf({ world, event, settleMs, lookMs }: MatrixWorld): number {
  const { workerCount, serviceMs, loadRatio } = world;
  const loadMs =
    event === "loadJump" ? 10 * lookMs + 0.5 * settleMs : loadRatio * (settleMs + lookMs);
  return (loadMs * workerCount) / serviceMs;
}

function pick<T>(random: FakeRandom, values: readonly T[]): T {
  const value = values[Math.floor(random.next() * values.length)];
  if (value === undefined) throw new Error("nothing to pick from");
  return value;
}
