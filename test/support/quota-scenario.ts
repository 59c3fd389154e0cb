import { quotaBounds } from "../../src/core/quota-bounds.js";
import { type QuotaFleet, type QuotaTraffic, startQuotaFleet } from "./quota-fleet.js";
import type { Stage } from "./stage.js";
import { waitFor } from "./wait.js";

/** What each tenant of `scenarioPolicy` may have a second. */
export const limitHz = 30;
export const ttlMs = 10_000;
export const leaseMs = 15_000;
export const reportMs = 5_000;

/** For messages, rounds, and a machine that is busy. */
export const slackMs = 3_000;

/** A limit for each tenant, that Envoys enforce. */
export const scenarioPolicy = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: edge
      on_store_failure: deny
      descriptors:
        - {key: tenant, rate_limit: {name: pace, unit: second, requests_per_unit: ${limitHz}}}
  quotas:
    - {name: pace, domain: edge, bucket: [{header: x-tenant, as: tenant}]}
`;

/** Three Envoys, of which the second one asks another Headgate first. */
export function startScenario(
  stage: Stage,
  headgateEnvs: readonly Readonly<Record<string, string>>[],
): Promise<QuotaFleet> {
  const filter = { domain: "edge", quota: "pace", keys: ["tenant"] };
  return startQuotaFleet(stage, { policy: scenarioPolicy, headgateEnvs, homes: [0, 1, 0], filter });
}

/** Traffic of a tenant through each Envoy, so much a second. */
export function driveAll(
  fleet: QuotaFleet,
  tenant: string,
  perSecond: number,
): readonly QuotaTraffic[] {
  return fleet.envoys.map((_, envoy) => {
    const traffic = fleet.drive(envoy, { "x-tenant": tenant });
    traffic.pace(perSecond);
    return traffic;
  });
}

/** Lets traffic go on for a time. */
export async function wait(durationMs: number): Promise<void> {
  const untilMs = performance.now() + durationMs;
  await waitFor("time has passed", () => performance.now() >= untilMs, {
    withinMs: 2 * durationMs + 1_000,
  });
}

/** How many requests pass in a time from now on. */
export async function passedIn(all: readonly QuotaTraffic[], durationMs: number): Promise<number> {
  const fromMs = performance.now();
  await wait(durationMs + 200);
  return passedBetween(all, fromMs, fromMs + durationMs);
}

/** How many requests of a time have passed. */
export function passedBetween(
  all: readonly QuotaTraffic[],
  fromMs: number,
  untilMs: number,
): number {
  return all.reduce((sum, one) => sum + one.passed(fromMs, untilMs), 0);
}

/** What assignments of a limit let pass in a time, at most: the bound that the law states. */
export function most(durationMs: number, hz = limitHz): number {
  const { envelope } = quotaBounds({
    limits: [{ hits: hz, periodUs: 1_000_000, burst: hz }],
    ttlMs,
    holdersMax: 6,
    replicasMax: 2,
    lateMs: 1_000,
    hasCalls: false,
  });
  return (envelope.hitsPerSecond * durationMs) / 1_000 + envelope.hitsMax;
}
