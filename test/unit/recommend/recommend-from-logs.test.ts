import { describe, expect, it } from "vitest";
import { sha256 } from "../../../src/app/base/sha256.js";
import { parsePolicy } from "../../../src/policy/parse.js";
import { buildPolicy } from "../../../src/policy/policy.js";
import { recommendFromLogs } from "../../../src/recommend/recommend-from-logs.js";
import { FakeRandom } from "../../support/fake-random.js";
import { type GeneratedLog, generateRequests, requestOf } from "../../support/generated-log.js";

const policyText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: user
          rate_limit: {unit: minute, requests_per_unit: 600}
  services:
    - name: orders
      rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}]]}
`;

const log: GeneratedLog = { seed: 1, days: 3, callers: 30, perDay: 1_000, zipf: 0.5 };

describe("recommendFromLogs", () => {
  it.each([
    { only: "services", readings: 1, limits: 0 },
    { only: "limits", readings: 2, limits: 1 },
    { only: undefined, readings: 2, limits: 1 },
  ] as const)("reads logs no more often than needed: $only", async (row) => {
    const sources = [{ file: "policy.yaml", text: policyText }];
    const parsed = parsePolicy(sources);
    if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
    let readings = 0;
    const recommended = await recommendFromLogs({
      sources,
      given: sources,
      policy: buildPolicy("test", parsed),
      isFixed: false,
      isChosen: () => true,
      only: row.only,
      forAll: undefined,
      headers: [],
      options: {
        refusedCallerRatioMax: 0.01,
        refusedRequestRatioMax: 0.001,
        headroom: undefined,
      },
      readLogs: async (take) => {
        readings += 1;
        for (const { user, timeUs } of generateRequests(log)) take(requestOf(user, timeUs));
      },
      digest: sha256,
      nameOf: (text) => text,
      random: new FakeRandom(1),
    });
    if (recommended.kind === "problem") throw new Error(recommended.message);
    expect(recommended.recommendation.proposals).toHaveLength(row.limits);
    expect(readings).toBe(row.readings);
  });
});
