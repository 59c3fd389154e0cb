import { readFile, writeFile } from "node:fs/promises";
import { defaultQuotaTtlMs, quotaLeaseSlackMs, quotaReportMs } from "../../src/core/quota/quota.js";
import type { QuotaShare } from "../../src/gen/headgate/admin/v1/admin_pb.js";
import { type AdminClients, adminClients } from "./admin.js";
import { freePort } from "./free-port.js";
import type { RunningHeadgate } from "./headgate-process.js";
import { type QuotaBound, quotaBounds } from "./quota-bounds.js";
import {
  nodeName,
  type QuotaFleet,
  type QuotaFleetOptions,
  type QuotaTraffic,
  startQuotaFleet,
} from "./quota-fleet.js";
import { redisEnv, startRedis } from "./redis.js";
import type { RedisServer } from "./redis-server.js";
import type { Stage } from "./stage.js";
import { trueTimes } from "./true-times.js";
import { waitFor } from "./wait.js";

/** What each tenant of `scenarioPolicy` may have a second; `edited` until its limit is edited. */
export const limitHz = 30;

const ttlMs = trueTimes ? defaultQuotaTtlMs : 4_000;

/** How long a replica may hand out what it was leased last. */
export const leaseMs = ttlMs + quotaLeaseSlackMs;

/** For messages, rounds, and a machine that is busy. */
export const slackMs = 3_000;

/**
 * Two reports of an Envoy, and what it takes to act on them. How often it reports cannot be chosen:
 * Envoy 1.40 does not read `reporting_interval`.
 */
export const twoReportsMs = 2 * quotaReportMs + slackMs;

/** A dead holder's part is handed out again, and the others have told that they want it. */
export const settledMs = leaseMs + twoReportsMs;

/** What the tenant `edited` may have, as it stands in the policy. */
export const editedLimit = (hz: number): string =>
  `value: edited, rate_limit: {name: edited, unit: second, requests_per_unit: ${hz}}`;

/** A limit for each tenant, that Envoys enforce. */
const scenarioPolicy = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: edge
      on_store_failure: deny
      descriptors:
        - {key: tenant, rate_limit: {name: pace, unit: second, requests_per_unit: ${limitHz}}}
        - {key: tenant, ${editedLimit(limitHz)}}
  quotas:
    - name: pace
      domain: edge
      ttl: ${ttlMs / 1_000}s
      bucket: [{header: x-tenant, as: tenant}]
`;

/** What a refused request of a `QuotaScenario` is answered with. */
export const refusal = { status: 503, body: "enough\n" } as const;

/** What one Envoy has of a tenant's limit. */
export type TenantShare = Pick<QuotaShare, "node" | "assignment" | "age">;

/** Envoys with quotas, and Headgates on one Redis. */
export class QuotaScenario {
  readonly redis: RedisServer;
  readonly fleet: QuotaFleet;
  /** By Headgate. */
  readonly admins: readonly AdminClients[];

  private constructor(parts: Pick<QuotaScenario, "redis" | "fleet" | "admins">) {
    this.redis = parts.redis;
    this.fleet = parts.fleet;
    this.admins = parts.admins;
  }

  /** Starts it. */
  static async start(
    stage: Stage,
    { homes, mortal }: Pick<QuotaFleetOptions, "homes" | "mortal">,
  ): Promise<QuotaScenario> {
    const redis = await startRedis(stage);
    const ports = await Promise.all(Array.from({ length: Math.max(...homes) + 1 }, freePort));
    const headgateEnvs = ports.map((port) => ({
      ...redisEnv(redis.port),
      HEADGATE_ADMIN_ADDR: `127.0.0.1:${port}`,
      HEADGATE_ADMIN_OPEN: "true",
      // Tests that run at the same time ask one port, on a machine that may be busy.
      HEADGATE_ADMIN_CALLS_PER_SECOND: "1000",
    }));
    const denied = {
      http_status: { code: refusal.status },
      http_body: { value: Buffer.from(refusal.body).toString("base64") },
    };
    const settings = { deny_response_settings: denied };
    const filter = { domain: "edge", quota: "pace", keys: ["tenant"], settings };
    const policy = scenarioPolicy;
    const fleet = await startQuotaFleet(stage, { policy, headgateEnvs, mortal, homes, filter });
    const admins = ports.map((port) => adminClients(port));
    return new QuotaScenario({ redis, fleet, admins });
  }

  /** Asks for a tenant at some Envoys: so many requests a second, once each of them has a share. */
  async drive(tenant: string, paces: Readonly<Record<number, number>>): Promise<TenantTraffic> {
    const envoys = Object.keys(paces).map(Number);
    const traffics = envoys.map((envoy) => this.fleet.drive(envoy, { "x-tenant": tenant }));
    await Promise.all(traffics.map((traffic) => traffic.sendOne()));
    await waitFor("each Envoy has a share", async () => {
      const shares = await this.sharesOf(tenant);
      const assigned = shares.filter(({ assignment }) => assignment.case !== undefined);
      const nodes = assigned.map(({ node }) => node);
      return envoys.every((envoy) => nodes.includes(nodeName(envoy)));
    });
    const traffic = new TenantTraffic(traffics);
    traffic.pace(Object.values(paces));
    return traffic;
  }

  /** What Envoys have of a tenant's limit, as the Headgates that live know it. */
  async sharesOf(tenant: string): Promise<readonly TenantShare[]> {
    const { headgates, mortal } = this.fleet;
    const isLive = (one: RunningHeadgate | undefined) =>
      one !== mortal || mortal?.process.isRunning === true;
    const live = this.admins.filter((_, i) => isLive(headgates[i]));
    const answers = await Promise.all(
      live.map(({ quotas }) => quotas.listQuotaPools({ count: 100 })),
    );
    const pools = answers.flatMap(({ pools }) => pools);
    const own = pools.filter(({ entries }) => entries[0]?.value === tenant);
    return own.flatMap(({ shares }) => shares);
  }

  /** Changes the policy of all Headgates. */
  async edit(before: string, after: string): Promise<void> {
    for (const { policyPath } of this.fleet.headgates) {
      const text = await readFile(policyPath, "utf8");
      await writeFile(policyPath, text.replace(before, after));
    }
  }
}

/** What is asked for one tenant, through several Envoys. */
export class TenantTraffic {
  readonly startMs = performance.now();
  readonly each: readonly QuotaTraffic[];

  constructor(each: readonly QuotaTraffic[]) {
    this.each = each;
  }

  /** So many a second through each from now on. */
  pace(paces: readonly number[]): void {
    this.each.forEach((traffic, i) => {
      traffic.pace(paces[i] ?? 0);
    });
  }

  /** How many requests that were sent since then have passed. */
  passedSince(fromMs: number): number {
    return sum(this.each.map((one) => one.passed(fromMs, performance.now())));
  }

  /**
   * What became of those that were sent last, and have their answers, by Envoy. Before there is
   * traffic for as long as that it is no number, which meets no bound.
   */
  lately(windowMs: number): readonly { readonly passed: number; readonly refused: number }[] {
    const untilMs = Math.min(...this.each.map(({ answeredMs }) => answeredMs));
    const fromMs = untilMs - windowMs;
    const unknown = fromMs < this.startMs ? Number.NaN : 0;
    return this.each.map((one) => ({
      passed: one.passed(fromMs, untilMs) + unknown,
      refused: one.refused(fromMs, untilMs) + unknown,
    }));
  }

  /** How many of those a second have passed, by Envoy. */
  latelyHz(windowMs: number): readonly number[] {
    return this.lately(windowMs).map(({ passed }) => (passed * 1_000) / windowMs);
  }

  /** Why requests had no answer. */
  get failures(): readonly string[] {
    return this.each.flatMap(({ failures }) => failures);
  }
}

/** All of them together. */
export function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

/** What assignments of a limit let pass in a time, at most: the bound that the law states. */
export function mostAssigned(durationMs: number, hz = limitHz): number {
  return hitsOf(bounds(hz, false).envelope, durationMs);
}

/** The same of all hits, where calls ask for the limit, too. */
export function mostWithCalls(durationMs: number): number {
  return hitsOf(bounds(limitHz, true).total, durationMs);
}

function hitsOf({ hitsPerSecond, hitsMax }: QuotaBound, durationMs: number): number {
  return (hitsPerSecond * durationMs) / 1_000 + hitsMax;
}

function bounds(hz: number, hasCalls: boolean) {
  return quotaBounds({
    limits: [{ hits: hz, periodUs: 1_000_000, burst: hz }],
    ttlMs,
    holdersMax: 4,
    replicasMax: 2,
    lateMs: 1_000,
    hasCalls,
  });
}
