import type { QuotaHolder } from "../../src/core/quota/quota.js";
import { QuotaHolders } from "../../src/core/quota/quota-holders.js";
import { QuotaPool } from "../../src/core/quota/quota-pool.js";
import { lookAtQuotas, type QuotaLook } from "../simulation/quota-report.js";
import { bigQuotas, smallQuotas } from "../simulation/quota-scenarios.js";
import { FakeRandom } from "../support/fake-random.js";
import { mean } from "../support/station.js";
import { layOut } from "./report.js";

/** What the law of quotas costs one replica. */
export interface QuotaCost {
  readonly envoyCount: number;
  readonly bucketsPerEnvoy: number;
  readonly poolCount: number;
  /** Of a report with its answer, without rounds. */
  readonly cpuUsPerReport: number;
  /** Of everything: reports each five seconds, rounds, charges, claims. A thousand is a core. */
  readonly cpuMsPerSecond: number;
  /** Of everything that is kept, pools too. */
  readonly bytesPerBucket: number;
}

/** The fleet that the cost is told of. */
const namedFleet = { envoyCount: 1_000, bucketsPerEnvoy: 100, poolCount: 1_000 } as const;

const second = 1_000_000;

/** Seconds until everything is compiled and divided, and those that are measured. */
const warmUpSeconds = 15;
const measuredSeconds = 30;

/** Ticks of a second, in which a part of the Envoys report. */
const ticksPerSecond = 10;

interface Bucket {
  readonly pool: QuotaPool;
  readonly holder: QuotaHolder;
}

/** Measures a fleet on one replica; demand is never the same for two reports. */
export function measureQuotas({ envoyCount, bucketsPerEnvoy, poolCount } = namedFleet): QuotaCost {
  const random = new FakeRandom(1);
  globalThis.gc?.();
  const heapBefore = process.memoryUsage();
  const holders = new QuotaHolders();
  const settings = {
    mode: "limited",
    limits: [{ hits: 1_000, periodUs: second, burst: 1_000 }],
    ttlMs: 10_000,
    callsShare: 0,
  } as const;
  const pools = Array.from(
    { length: poolCount },
    () => new QuotaPool({ settings, holders, nowMs: 0 }),
  );
  const buckets: Bucket[] = [];
  for (let i = 0; i < envoyCount * bucketsPerEnvoy; i += 1) {
    const pool = pools[i % poolCount];
    const holder = pool?.join({ weight: 1, identity: "fleet" }, 0);
    if (pool !== undefined && holder !== undefined) buckets.push({ pool, holder });
  }
  const used = { reportsUs: 0, allUs: 0, reportCount: 0 };
  for (let tick = 0; tick < (warmUpSeconds + measuredSeconds) * ticksPerSecond; tick += 1) {
    const nowMs = (tick * 1_000) / ticksPerSecond;
    const isMeasured = tick >= warmUpSeconds * ticksPerSecond;
    const before = process.cpuUsage();
    const reportCount = reportSome(buckets, { tick, nowMs, random });
    const reportsUs = usedUs(before);
    for (const pool of pools) drive(pool, tick, nowMs);
    if (!isMeasured) continue;
    used.reportsUs += reportsUs;
    used.allUs += usedUs(before);
    used.reportCount += reportCount;
  }
  globalThis.gc?.();
  const heap = process.memoryUsage();
  const bytes = heap.heapUsed - heapBefore.heapUsed + heap.arrayBuffers - heapBefore.arrayBuffers;
  return {
    envoyCount,
    bucketsPerEnvoy,
    poolCount,
    cpuUsPerReport: used.reportsUs / used.reportCount,
    cpuMsPerSecond: used.allUs / 1_000 / measuredSeconds,
    bytesPerBucket: bytes / buckets.length,
  };
}

function usedUs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

interface Moment {
  readonly tick: number;
  readonly nowMs: number;
  readonly random: FakeRandom;
}

/** Each bucket reports each five seconds. */
function reportSome(buckets: readonly Bucket[], { tick, nowMs, random }: Moment): number {
  const every = 5 * ticksPerSecond;
  let count = 0;
  for (let i = tick % every; i < buckets.length; i += every) {
    const bucket = buckets[i];
    if (bucket === undefined) continue;
    const { pool, holder } = bucket;
    const allowedHits = Math.floor(random.next() * 40);
    const deniedHits = random.next() < 0.5 ? Math.floor(random.next() * 40) : 0;
    pool.report(holder, { allowedHits, deniedHits, elapsedMs: 5_000 }, nowMs);
    pool.answer(holder, nowMs);
    count += 1;
  }
  return count;
}

function drive(pool: QuotaPool, tick: number, nowMs: number): void {
  if (tick % ticksPerSecond === 0) {
    const { ceilingMicroHz } = pool.claim(nowMs);
    pool.lease({ rateMicroHz: ceilingMicroHz, untilMs: nowMs + 15_000, elsewhere: [] }, nowMs);
  }
  if (tick % 5 === 0) {
    const hits = pool.dueHits(nowMs);
    pool.charged({ hits, levels: [500] }, nowMs);
  }
  if (pool.isDue(nowMs)) pool.rebalance(nowMs);
}

/** The cost as a line. */
export function tellQuotaCost(cost: QuotaCost): string {
  const { envoyCount, bucketsPerEnvoy, poolCount, cpuUsPerReport } = cost;
  const fleet = `${envoyCount} Envoys of ${bucketsPerEnvoy} buckets in ${poolCount} pools`;
  const perCent = (cost.cpuMsPerSecond / 10).toFixed(0);
  const all = `${cost.cpuMsPerSecond.toFixed(0)} ms of CPU a second (${perCent} % of a core)`;
  const report = `${cpuUsPerReport.toFixed(2)} us a report with its answer`;
  const bytes = `${cost.bytesPerBucket.toFixed(0)} bytes a bucket`;
  return `Quotas, ${fleet}: ${report}, ${all} with all that follows, ${bytes}.`;
}

/** The big fleets for each hundred small ones. */
const smallPerBig = 100;

/** What so many seeds of small fleets showed, a big one for each 100, and what it costs. */
export interface QuotaReport {
  readonly text: string;
  readonly isSound: boolean;
}

/** Runs seeds from `first` on. */
export function tellQuotas({ first, count }: { first: number; count: number }): QuotaReport {
  const cost = tellQuotaCost(measureQuotas());
  const seeds = Array.from({ length: count }, (_, i) => first + i);
  const small = seeds.map((seed) => lookAtQuotas(smallQuotas(seed), seed));
  const bigSeeds = seeds.slice(0, Math.ceil(count / smallPerBig));
  const big = bigSeeds.map((seed) => lookAtQuotas(bigQuotas(seed), seed));
  const failures = [...small, ...big].flatMap(({ violations }, i) => {
    const seed = i < count ? `seed ${seeds[i]}` : `big seed ${bigSeeds[i - count]}`;
    return violations.length === 0 ? [] : [`${seed}: ${violations.join("\n")}`];
  });
  const head = ["", "worst of a bound: envelope, total", "figure", "least", "1 %", "mean", "of"];
  const rows = [...rowsOf("small", small), ...rowsOf("big", big)];
  const text = [
    `${count} small fleets and ${big.length} big ones, ${failures.length} failed.`,
    ...failures.slice(0, 3),
    layOut([head, ...rows]),
    cost,
  ].join("\n");
  return { text, isSound: failures.length === 0 };
}

function rowsOf(name: string, looks: readonly QuotaLook[]): readonly (readonly string[])[] {
  const envelope = Math.max(...looks.map(({ worst }) => worst.envelope));
  const total = Math.max(...looks.map(({ worst }) => worst.total));
  const worst = `${envelope.toFixed(2)}, ${total.toFixed(2)}`;
  return [
    [
      name,
      worst,
      ...figures(
        "used",
        looks.flatMap(({ utilisations }) => utilisations),
      ),
    ],
    [
      name,
      "",
      ...figures(
        "used, of one hit",
        looks.flatMap((look) => look.tinyUtilisations),
      ),
    ],
    [
      name,
      "",
      ...figures(
        "Jain's index",
        looks.flatMap(({ fairness }) => fairness),
      ),
    ],
  ];
}

function figures(name: string, values: readonly number[]): readonly string[] {
  if (values.length === 0) return [name, "", "", "", "0"];
  const sorted = [...values].sort((one, other) => one - other);
  const low = sorted[Math.floor(sorted.length / 100)] ?? Number.NaN;
  const [least = Number.NaN] = sorted;
  return [name, ...[least, low, mean(sorted)].map((value) => value.toFixed(3)), `${sorted.length}`];
}
