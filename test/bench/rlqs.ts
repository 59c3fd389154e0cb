import { Envoy } from "../support/envoy.js";
import { fromHeader, httpFilter, type Json } from "../support/envoy-config.js";
import { freePort } from "../support/free-port.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { HttpClient } from "../support/http-client.js";
import { controlCluster, quotaFilter } from "../support/quota-fleet.js";
import { Stage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";
import type { LoadOrder } from "./load.js";
import { type MeasuredLoad, measureLoad } from "./run-load.js";

const policy = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: bench}
spec:
  rateLimits:
    - domain: bench
      descriptors:
        - {key: user, rate_limit: {name: pace, unit: second, requests_per_unit: 1000000}}
  quotas:
    - {name: pace, domain: bench, bucket: [{header: x-user, as: user}]}
`;

/** Callers; each has a key, and a bucket. */
const userCount = 200;
const users = Array.from({ length: userCount }, (_, i) => `user-${i}`);
const turnCount = 3;
const warmUpMs = 1_000;

/** What costs Envoy and its clients least, so that what is asked weighs most. */
const load: Pick<LoadOrder, "calls" | "connectionCount" | "pace"> = {
  calls: { kind: "http2", heads: users.map((user) => [["x-user", user]]) },
  connectionCount: 4,
  pace: { kind: "closed", inFlightPerConnection: 16 },
};

/** An answer without an upstream, after everybody was asked. */
const answer: Json = httpFilter("fault", "HTTPFault", {
  abort: { http_status: 200, percentage: { numerator: 100 } },
});

interface RlqsRow {
  readonly name: string;
  readonly envoy: Envoy;
  readonly headgate: HeadgateProcess;
  readonly turns: MeasuredLoad[];
}

/**
 * Requests a second through one Envoy (one worker) that asks for each request (RLS), that enforces
 * what it is assigned (RLQS), and that does neither: in turns on the same cores, so that their
 * ratios mean something. Each has a Headgate of its own with the embedded store.
 *
 * @returns a table
 */
export async function measureRlqs(measureMs: number): Promise<string> {
  const stage = new Stage();
  await stage.open();
  try {
    const rows = [
      await startRow(stage, "neither", { isAsking: false, hasQuota: false }),
      await startRow(stage, "RLS", { isAsking: true, hasQuota: false }),
      await startRow(stage, "RLQS", { isAsking: false, hasQuota: true }),
    ];
    for (let turn = 0; turn < turnCount; turn += 1) {
      for (const row of rows) {
        const order = {
          port: row.envoy.port,
          ...load,
          warmUpMs,
          durationMs: measureMs / turnCount,
        };
        row.turns.push(await measureLoad(order, [row.envoy.pid, row.headgate.process.pid]));
      }
    }
    return tell(rows);
  } finally {
    await stage.close();
  }
}

async function startRow(
  stage: Stage,
  name: string,
  { isAsking, hasQuota }: { readonly isAsking: boolean; readonly hasQuota: boolean },
): Promise<RlqsRow> {
  const controlPort = await freePort();
  const env = { HEADGATE_CONTROL_ADDR: `127.0.0.1:${controlPort}` };
  const headgate = await HeadgateProcess.start(stage, { policy, env });
  const filter = { domain: "bench", quota: "pace", keys: ["user"], node: name };
  const envoy = await Envoy.start(stage, {
    upstreamPort: controlPort,
    headgatePorts: [headgate.grpcPort],
    domain: "bench",
    rateLimits: isAsking ? [{ actions: [fromHeader("x-user", "user")] }] : [],
    filter: { enable_x_ratelimit_headers: "OFF", enable_retry_after_header: false },
    filtersBefore: hasQuota ? [quotaFilter(filter)] : [],
    filtersAfter: [answer],
    moreClusters: [controlCluster([controlPort])],
  });
  if (hasQuota) await assignAll(envoy, headgate);
  return { name, envoy, headgate, turns: [] };
}

/** Buckets begin before anything is measured. */
async function assignAll(envoy: Envoy, headgate: HeadgateProcess): Promise<void> {
  const http = new HttpClient();
  for (const user of users) await http.send({ port: envoy.port, headers: { "x-user": user } });
  http.close();
  await waitFor("all buckets have a share", async () => {
    return (await headgate.metric("headgate_quota_holders")) === userCount;
  });
}

function tell(rows: readonly RlqsRow[]): string {
  const best = rows.map(({ name, turns }) => {
    const [fastest] = [...turns].sort((one, other) => rateOf(other) - rateOf(one));
    if (fastest === undefined) throw new Error("every row takes its turns");
    const refused = turns.reduce((sum, { report }) => sum + report.deniedCount, 0);
    const failed = turns.reduce((sum, { report }) => sum + report.failedCount, 0);
    const [envoyUs = 0, headgateUs = 0] = fastest.cpuUs.map((us) => us / fastest.report.callCount);
    const { p50Ms, p99Ms } = fastest.report;
    return { name, perSecond: rateOf(fastest), envoyUs, headgateUs, p50Ms, p99Ms, refused, failed };
  });
  const lines = best.map((row) =>
    [
      row.name.padEnd(8),
      `${Math.round(row.perSecond)} requests/s`.padStart(18),
      `Envoy ${row.envoyUs.toFixed(1)} us`.padStart(16),
      `Headgate ${row.headgateUs.toFixed(2)} us`.padStart(20),
      `p50 ${row.p50Ms.toFixed(2)} ms, p99 ${row.p99Ms.toFixed(2)} ms`.padStart(28),
      `${row.refused} refused, ${row.failed} failed`.padStart(22),
    ].join(" "),
  );
  const [, calls, quotas] = best;
  const ratio = (quotas?.perSecond ?? 0) / (calls?.perSecond ?? 1);
  return [...lines, `RLQS / RLS: ${ratio.toFixed(2)}`].join("\n");
}

function rateOf({ report }: MeasuredLoad): number {
  return (report.callCount / report.elapsedMs) * 1_000;
}
