import { describe, expect, it } from "vitest";
import { type QuotaFleet, startQuotaFleet } from "../support/quota-fleet.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policy = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: edge
      descriptors:
        - {key: tenant, rate_limit: {name: pace, unit: second, requests_per_unit: 100, burst: 200}}
  quotas:
    - name: pace
      domain: edge
      bucket: [{header: x-tenant, as: tenant}]
`;

/** What each of three Envoys is asked: together two fifths of the limit. */
const perSecond = 13;

/** Longer than from one report of an Envoy to its next. */
const durationMs = 8_000;

async function newKeyAt(fleet: QuotaFleet, beginsMs: readonly number[]): Promise<string> {
  const startMs = performance.now();
  const traffics = beginsMs.map((_, envoy) => fleet.drive(envoy, { "x-tenant": "new" }));
  for (const [i, beginMs] of beginsMs.entries()) {
    await waitFor("its callers come", () => performance.now() - startMs >= beginMs);
    traffics[i]?.pace(perSecond);
  }
  await waitFor("all have called", () => performance.now() - startMs >= durationMs, {
    withinMs: 2 * durationMs,
  });
  const endMs = performance.now();
  const counts = traffics.map((traffic) => {
    const refused = traffic.refused(startMs, endMs);
    return `${refused} of ${refused + traffic.passed(startMs, endMs)}`;
  });
  process.stdout.write(`refused: ${counts.join(", ")}\n`);
  return counts.map((count) => count.replace(/ of .*/, "")).join(" ");
}

/**
 * Story: a key that was new to a quota was refused at first, though its callers had two fifths of
 * the limit and it was to be let through: by the first Envoy until there were tokens to pay for its
 * bucket, by the others until the first one had given back what it was lent.
 */
describe("a key that is new to a quota", () => {
  it.each([
    { title: "at once", beginsMs: [0, 0, 0] },
    { title: "one after the other", beginsMs: [0, 1_000, 2_500] },
  ])("is refused by no Envoy while there is room, asked $title", async ({ beginsMs }) => {
    const redis = await startRedis(stage);
    const headgateEnvs = [redisEnv(redis.port), redisEnv(redis.port)];
    const filter = { domain: "edge", quota: "pace", keys: ["tenant"] };
    const homes = [0, 1, 0];
    const fleet = await startQuotaFleet(stage, { policy, headgateEnvs, homes, filter });
    expect(await newKeyAt(fleet, beginsMs)).toBe("0 0 0");
  });
});
