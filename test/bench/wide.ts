import { bucketBytes, poolBytes } from "../../src/decide/quota/quota-sessions.js";
import { measureControlPort, promisedFleet } from "./control-port.js";
import { type FleetLoopCost, measureFleetLoop, measureReportBytes } from "./fleet-loop.js";
import type { ProofParts, ProofRow } from "./proof.js";
import { measureQuotaFleet, type QuotaFleet, type QuotaPathCost } from "./quota-path.js";
import { regionRows } from "./region-rows.js";
import { formatTurns } from "./turn-meter.js";

/** Until a control port has no new baselines. */
const controlWarmUpMs = 15_000;

/**
 * What a control port, the loop, quotas and regions cost. The control port and regions are measured
 * over real connections; the loop and quotas in virtual time, at sizes that two cores do not carry.
 */
export function wideParts(measureMs: number): ProofParts {
  return {
    "control port": () => controlRows(2 * measureMs),
    loop: loopRows,
    quotas: quotaRows,
    regions: () => regionRows(measureMs),
  };
}

/** Services of each Envoy, at one number of Envoys: the curve of the picture. */
const serviceCounts = [5, 20, 50, 100];

async function loopRows(): Promise<readonly ProofRow[]> {
  const big = [20, 50].flatMap((serviceCount) =>
    loopFleetRows(measureFleetLoop(10_000, serviceCount)),
  );
  const curve = serviceCounts.map((serviceCount): ProofRow => {
    const { leaderMs } = measureFleetLoop(1_000, serviceCount);
    return {
      group: "wide",
      name: `loop, 1,000 Envoys x ${serviceCount} services, for an Envoy and service`,
      value: leaderMs / serviceCount,
      unit: "us",
      growth: { by: "services", count: serviceCount },
    };
  });
  return [...big, ...curve, ...reportEnvoyCounts.flatMap(reportRows)];
}

/** Envoys of 20 services each. */
const reportEnvoyCounts = [100, 1_000, 10_000];

/** What reports were for an Envoy and service each second before they differed from full ones. */
const wholeReportBytes = 68;

function reportRows(envoyCount: number): readonly ProofRow[] {
  process.stderr.write(`reports of ${envoyCount} Envoys ...\n`);
  const serviceCount = 20;
  const { steady, changing, full } = measureReportBytes(envoyCount, serviceCount);
  const fleet = `loop, ${envoyCount.toLocaleString("en-US")} Envoys x ${serviceCount} services`;
  const row = { group: "wide", unit: "MB" } as const;
  return [
    {
      ...row,
      name: `${fleet}, reports in a second, numbers within 2 %`,
      value: steady / 1e6,
      note: `and ${(full / 1e3).toFixed(0)} KB at least once in five minutes`,
    },
    {
      ...row,
      name: `${fleet}, reports in a second, all numbers new`,
      value: changing / 1e6,
      // A tenth of what whole reports are.
      target: { most: (envoyCount * serviceCount * wholeReportBytes) / 1e7 },
    },
  ];
}

function loopFleetRows(cost: FleetLoopCost): readonly ProofRow[] {
  const { serviceCount, leaderMs, replicaMs, turns, reportBytes } = cost;
  const fleet = `loop, 10,000 Envoys x ${serviceCount} services`;
  const row = { group: "wide" } as const;
  return [
    {
      ...row,
      name: `${fleet}, the leader's CPU`,
      value: leaderMs / 10,
      unit: "%",
      // The promise is for 20 services.
      ...(serviceCount === 20 ? { target: { most: 50 } } : {}),
      note: `of a core, without its control port; of each replica ${(replicaMs / 10).toFixed(0)} %`,
    },
    {
      ...row,
      name: `${fleet}, longest turn`,
      value: turns.median.main,
      unit: "ms",
      target: { most: 5 },
      note: formatTurns(turns),
    },
    {
      ...row,
      name: `${fleet}, reports to the store in a second`,
      value: reportBytes / 1e6,
      unit: "MB",
    },
  ];
}

/** CPU of an Envoy's service each second: half of a core for a third of 10,000 x 20. */
const controlUsMost = 7.5;

async function controlRows(measureMs: number): Promise<readonly ProofRow[]> {
  const order = { ...promisedFleet, warmUpMs: controlWarmUpMs, measureMs, nodeOptions: [] };
  const cost = await measureControlPort(order);
  const fleet = "control port, 1,000 Envoys x 20 services";
  const row = { group: "wide" } as const;
  return [
    {
      ...row,
      name: `${fleet}, CPU for each Envoy, service and second`,
      value: cost.cpuUsPerNodeAndService,
      unit: "us",
      target: { most: controlUsMost },
      note: `${(100 * cost.coreRatio).toFixed(0)} % of a core, over real connections`,
    },
    {
      ...row,
      name: `${fleet}, event loop's p99`,
      value: cost.delayP99Ms,
      unit: "ms",
      target: { most: 5 },
    },
    {
      ...row,
      name: `${fleet}, resident memory for each Envoy`,
      value: cost.grownBytes / cost.nodeCount / 1e6,
      unit: "MB",
    },
  ];
}

const quotaEnvoyCounts = [100, 1_000, 10_000];

async function quotaRows(): Promise<readonly ProofRow[]> {
  const costs: QuotaPathCost[] = [];
  for (const envoyCount of quotaEnvoyCounts) {
    process.stderr.write(`quotas of ${envoyCount} Envoys ...\n`);
    costs.push(await measureQuotaFleet({ envoyCount, bucketsPerEnvoy: 100, poolCount: 1_000 }));
  }
  process.stderr.write("new pools ...\n");
  const own: QuotaFleet = { envoyCount: 500, bucketsPerEnvoy: 100, poolCount: 50_000 };
  return [...costs.flatMap(quotaFleetRows), ...newPoolRows(await measureQuotaFleet(own))];
}

function quotaFleetRows(cost: QuotaPathCost): readonly ProofRow[] {
  const { envoyCount, bucketsPerEnvoy } = cost;
  const fleet = `RLQS, ${envoyCount.toLocaleString("en-US")} Envoys x ${bucketsPerEnvoy} buckets`;
  const row = { group: "wide" } as const;
  return [
    {
      ...row,
      name: `${fleet}, a report`,
      value: cost.cpuUsPerReport,
      unit: "us",
      target: { most: 5 },
      note: "from the bytes of the report to those of the assignment",
    },
    {
      ...row,
      name: `${fleet}, a report with all that follows`,
      value: cost.cpuUsPerReportOverall,
      unit: "us",
      growth: { by: "Envoys", count: envoyCount },
      note: "with rounds, charges and claims, and the embedded store",
    },
    {
      ...row,
      name: `${fleet}, longest turn`,
      value: cost.turns.median.main,
      unit: "ms",
      target: { most: 5 },
      note: formatTurns(cost.turns),
    },
    heldRow(fleet, cost),
  ];
}

/** What a replica's accounting takes for it is to be no less than what V8 holds in its heap. */
function heldRow(fleet: string, { bytesPerBucket }: QuotaPathCost): ProofRow {
  return {
    group: "wide",
    name: `${fleet}, held for a bucket`,
    value: bytesPerBucket,
    unit: "bytes",
    target: { most: 1_500 },
    note: `about 200 of them in columns outside of the heap; accounted as ${bucketBytes} and texts`,
  };
}

function newPoolRows(cost: QuotaPathCost): readonly ProofRow[] {
  return [
    {
      group: "wide",
      name: "RLQS, a new pool, to its first share",
      value: cost.cpuUsPerNewBucket,
      unit: "us",
      target: { most: 20 },
      note: "the second half of 50,000, collector threads included; V8 compiles during the first",
    },
    {
      group: "wide",
      name: "RLQS, a pool with one bucket, held",
      value: cost.bytesPerBucket,
      unit: "bytes",
      note: `with the embedded store; accounted as ${bucketBytes + poolBytes} and texts`,
    },
  ];
}
