import { beforeAll, describe, expect, it } from "vitest";
import { quotaBounds } from "../../src/core/quota-bounds.js";
import { HttpClient } from "../support/http-client.js";
import { type QuotaFleet, type QuotaTraffic, startQuotaFleet } from "../support/quota-fleet.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const limitHz = 30;
const policy = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: edge
      descriptors:
        - {key: tenant, rate_limit: {name: pace, unit: second, requests_per_unit: ${limitHz}}}
  quotas:
    - {name: pace, domain: edge, bucket: [{header: x-tenant, as: tenant}]}
`;

/** Two reports of an Envoy, which come each 5 s, and what it takes to act on them. */
const twoReportsMs = 12_000;
const shiftMs = 18_000;
/** A minute, of which the bound is told. */
const endMs = 60_000;

const stage = useStage("file");
let fleet: QuotaFleet;
let startMs: number;
/** By scenario, the traffic of one tenant through each Envoy. */
let even: readonly QuotaTraffic[];
let skewed: readonly QuotaTraffic[];
let shifting: readonly QuotaTraffic[];
let called: readonly QuotaTraffic[];
/** When calls of the tenant that they share with quotas were let in. */
const calledMs: number[] = [];

const denied = {
  http_status: { code: "ServiceUnavailable" },
  http_body: { value: Buffer.from("enough\n").toString("base64") },
};

function drive(tenant: string, paces: readonly number[]): readonly QuotaTraffic[] {
  return paces.map((pace, envoy) => {
    const traffic = fleet.drive(envoy, { "x-tenant": tenant });
    traffic.pace(pace);
    return traffic;
  });
}

function passed(all: readonly QuotaTraffic[], fromMs: number, untilMs: number): number {
  return all.reduce((sum, one) => sum + one.passed(startMs + fromMs, startMs + untilMs), 0);
}

async function callAsLong(tenant: string): Promise<void> {
  const descriptors = [{ entries: [{ key: "tenant", value: tenant }] }];
  await waitFor(
    "calls end",
    async () => {
      const sentMs = performance.now();
      const answer = await fleet.headgates[0]?.postJson({ domain: "edge", descriptors });
      if (answer?.status === 200) calledMs.push(sentMs);
      return sentMs >= startMs + endMs;
    },
    { withinMs: 2 * endMs, everyMs: 50 },
  );
}

beforeAll(async () => {
  const { port } = await startRedis(stage);
  const env = redisEnv(port);
  fleet = await startQuotaFleet(stage, {
    policy,
    headgateEnvs: [env, env],
    homes: [0, 1, 0],
    filter: {
      domain: "edge",
      quota: "pace",
      keys: ["tenant"],
      settings: { deny_response_settings: denied },
    },
  });
  startMs = performance.now();
  even = drive("even", [20, 20, 20]);
  skewed = drive("skewed", [40, 3, 3]);
  shifting = drive("shifting", [40, 3, 3]);
  called = drive("called", [40]);
  const calls = callAsLong("called");
  await waitFor("demand shifts", () => performance.now() >= startMs + shiftMs, {
    withinMs: 2 * shiftMs,
  });
  shifting.forEach((traffic, envoy) => {
    traffic.pace([3, 40, 3][envoy] ?? 0);
  });
  await calls;
  for (const traffic of [...even, ...skewed, ...shifting, ...called]) traffic.pace(0);
}, 150_000);

/** What may have passed in a time, at most: assignments, and what came before the first one. */
function most(seconds: number, { hasCalls = false } = {}): number {
  const { envelope, total } = quotaBounds({
    limits: [{ hits: limitHz, periodUs: 1_000_000, burst: limitHz }],
    ttlMs: 10_000,
    holdersMax: 3,
    replicasMax: 2,
    lateMs: 1_000,
    hasCalls,
  });
  const of = hasCalls ? total : envelope;
  const beforeFirst = 15;
  return of.hitsPerSecond * seconds + of.hitsMax + beforeFirst;
}

describe("quotas of three Envoys and two Headgates", () => {
  it.each([
    ["even", () => even, 0.9],
    ["skewed", () => skewed, 0.9],
    ["shifting", () => shifting, 0.9],
  ] as const)("let pass no more than the quota and its bound with %s demand", (_, of, least) => {
    const seconds = endMs / 1_000;
    expect(passed(of(), 0, endMs)).toBeLessThanOrEqual(most(seconds));
    // Settled, it is the quota itself, give or take what is still level.
    const settled = passed(of(), endMs - 10_000, endMs);
    expect(settled).toBeLessThanOrEqual(10 * limitHz * 1.1 + limitHz);
    expect(settled).toBeGreaterThanOrEqual(10 * limitHz * least);
  });

  it("divide it evenly among those who ask for the same", () => {
    const each = even.map((one) => passed([one], endMs - 10_000, endMs));
    expect(Math.min(...each) / Math.max(...each)).toBeGreaterThan(0.5);
  });

  it("leave those alone who ask for little", () => {
    for (const quiet of [skewed[1], skewed[2]]) {
      if (quiet === undefined) throw new Error("three Envoys");
      expect(passed([quiet], twoReportsMs, endMs)).toBeGreaterThan((endMs - twoReportsMs) / 450);
    }
  });

  it("give one Envoy what the others leave, within two reports", () => {
    const [before, after] = [shifting[0], shifting[1]];
    if (before === undefined || after === undefined) throw new Error("three Envoys");
    expect(passed([before], shiftMs - 5_000, shiftMs)).toBeGreaterThan(0.4 * 5 * limitHz);
    const untilMs = shiftMs + twoReportsMs + 5_000;
    expect(passed([after], shiftMs + twoReportsMs, untilMs)).toBeGreaterThan(0.4 * 5 * limitHz);
  });

  it("share one budget with calls for the same limit", () => {
    const ofQuotas = passed(called, 0, endMs);
    const ofCalls = calledMs.length;
    expect(ofQuotas + ofCalls).toBeLessThanOrEqual(most(endMs / 1_000, { hasCalls: true }));
    const settledMs = startMs + endMs - 15_000;
    const both =
      passed(called, endMs - 15_000, endMs) + calledMs.filter((ms) => ms >= settledMs).length;
    expect(both).toBeLessThanOrEqual(15 * limitHz * 1.15 + limitHz);
    expect(calledMs.filter((ms) => ms >= settledMs).length).toBeGreaterThan(15);
  });

  it("refuse as the filter says, and nothing else goes wrong", async () => {
    const [port] = fleet.envoys.map((envoy) => envoy.port);
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const headers = { "x-tenant": "even" };
    const refused = await waitFor("one is refused", async () => {
      const all = await Promise.all(
        Array.from({ length: 60 }, () => http.send({ port: port ?? 0, headers })),
      );
      return all.find(({ status }) => status !== 200);
    });
    expect([refused.status, refused.body]).toEqual([503, "enough\n"]);
    const traffics = [...even, ...skewed, ...shifting, ...called];
    expect(traffics.reduce((sum, { failedCount }) => sum + failedCount, 0)).toBe(0);
    for (const headgate of fleet.headgates) {
      expect(await headgate.metric("headgate_bugs_total")).toBe(0);
      expect(await headgate.metric("headgate_quota_ignored_reports_total")).toBe(0);
      expect(await headgate.metric("headgate_quota_unusual_reports_total")).toBe(0);
    }
  });
});
