import { describe, expect, it } from "vitest";
import { sha256 } from "../../src/app/base/sha256.js";
import { parsePolicy } from "../../src/policy/parse.js";
import { buildPolicy } from "../../src/policy/policy.js";
import { recommendLimits } from "../../src/recommend/recommend.js";
import type { DemandBounds } from "../../src/recommend/rule-observer.js";
import { FakeRandom } from "../support/fake-random.js";
import {
  firstDayUs,
  type GeneratedLog,
  generateRequests,
  requestOf,
} from "../support/generated-log.js";
import { runSeeds, seedsFrom } from "../support/seeds.js";

const minuteUs = 60_000_000;

function policyWith(limit: string, key = "key: user"): string {
  return `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - ${key}
          ${limit}
        - key: unmet
          rate_limit: {unit: day, requests_per_unit: 1}
  services:
    - name: orders
      rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}]]}
`;
}

const perMinute = policyWith("rate_limit: {unit: minute, requests_per_unit: 600}");

interface Given {
  readonly text?: string;
  readonly requests: () => Iterable<{ timeUs: number; user: string }>;
  readonly refusedCallerRatioMax?: number;
  readonly refusedRequestRatioMax?: number;
  readonly bounds?: DemandBounds;
}

async function recommend({ text = perMinute, requests, bounds, ...ratios }: Given) {
  const sources = [{ file: "policy.yaml", text }];
  const parsed = parsePolicy(sources);
  if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
  const recommended = await recommendLimits({
    sources,
    policy: buildPolicy("test", parsed),
    forAll: undefined,
    options: {
      refusedCallerRatioMax: 0.01,
      refusedRequestRatioMax: 0.001,
      headroom: undefined,
      ...ratios,
      ...(bounds && { bounds }),
    },
    readLogs: async (take) => {
      for (const { user, timeUs } of requests()) take(requestOf(user, timeUs));
    },
    digest: sha256,
    nameOf: (text) => text,
    random: new FakeRandom(1),
  });
  if (recommended.kind === "problem") throw new Error(recommended.message);
  const { recommendation } = recommended;
  return { ...recommendation, text: recommended.sources[0]?.text ?? "" };
}

const week: GeneratedLog = { seed: 1, days: 7, callers: 200, perDay: 4_000, zipf: 0.5 };

function* everyMinute(
  callers: number,
  minutes: number,
  size = 1,
): Generator<{ timeUs: number; user: string }> {
  for (let minute = 0; minute < minutes; minute += 1) {
    for (let i = 0; i < callers * size; i += 1) {
      yield { timeUs: firstDayUs + minute * minuteUs + i, user: `user-${i % callers}` };
    }
  }
}

describe("recommendLimits()", () => {
  it("fits a week of callers, and the day that it has not seen", async () => {
    const { proposals, demands, notEnough, warnings } = await recommend({
      requests: () => generateRequests(week),
    });
    const [proposal] = proposals;
    expect(proposals).toHaveLength(1);
    expect(notEnough).toEqual([]);
    expect(warnings).toEqual(["No request met 1 rule: shop/unmet."]);
    // The busiest sends 8 % of 167 in an hour at most, and a few requests come together by chance.
    expect(proposal?.hits).toMatchObject({ was: 600 });
    expect(proposal?.hits.value).toBeLessThanOrEqual(3);
    expect(proposal?.burst.value).toBeLessThanOrEqual(7);
    expect(proposal?.refusals.callerDayRatio).toBeLessThanOrEqual(0.01);
    expect(proposal?.refusals.requestRatio).toBeLessThanOrEqual(0.001);
    const { predictedRatio = 1, actualRatio = 1, needError = 1 } = proposal?.heldOut ?? {};
    expect(predictedRatio).toBeLessThanOrEqual(0.01);
    expect(Math.abs(actualRatio - predictedRatio)).toBeLessThan(0.01);
    expect(Math.abs(needError)).toBeLessThanOrEqual(0.25);
    expect(demands[0]?.byHour.indexOf(Math.max(...(demands[0]?.byHour ?? [])))).toBeGreaterThan(11);
    expect(demands[0]?.zipfExponent).toBeGreaterThan(0.35);
    expect(demands[0]?.zipfExponent).toBeLessThan(0.65);
  });

  it("predicts days that it has not seen, within half a percent of the callers", async () => {
    const errors: number[] = [];
    await runSeeds(seedsFrom(100, 8), async (seed) => {
      const log = { ...week, seed, zipf: 0.3 + (seed % 4) * 0.3, perDay: 3_000 };
      const { proposals } = await recommend({ requests: () => generateRequests(log) });
      const { predictedRatio = 1, actualRatio = 0, needError = 1 } = proposals[0]?.heldOut ?? {};
      errors.push(Math.abs(actualRatio - predictedRatio));
      expect(Math.abs(needError)).toBeLessThan(0.5);
    });
    const mean = errors.reduce((sum, error) => sum + error, 0) / errors.length;
    expect(mean).toBeLessThan(0.005);
  });

  it("is wrong about a day that is unlike all before, and says by how much", async () => {
    function* requests(): Generator<{ timeUs: number; user: string }> {
      yield* generateRequests({ ...week, days: 6 });
      const sixDaysUs = 6 * 1_440 * minuteUs;
      for (const { timeUs, user } of everyMinute(200, 60, 6)) {
        yield { timeUs: timeUs + sixDaysUs, user };
      }
    }
    const { proposals } = await recommend({ requests });
    const { heldOut, headroom } = proposals[0] ?? {};
    expect(heldOut?.predictedRatio).toBeLessThanOrEqual(0.01);
    expect(heldOut?.actualRatio).toBe(1);
    expect(heldOut?.needError).toBeGreaterThan(1);
    expect(headroom?.factor).toBeGreaterThanOrEqual(1.25);
  });

  it("proposes the same with a caller that floods, whom the limit is meant for", async () => {
    const wild = { bursts: 3, size: 400 };
    const quiet = await recommend({ requests: () => generateRequests(week) });
    const flooded = await recommend({ requests: () => generateRequests({ ...week, wild }) });
    const numbers = ({ proposals: [first] }: typeof quiet) => [
      first?.hits.value,
      first?.burst.value,
    ];
    expect(numbers(flooded)).toEqual(numbers(quiet));
    const refusals = flooded.proposals[0]?.refusals;
    expect(refusals?.callers[0]).toMatchObject({ name: "user=wild", isOutlier: true });
    expect(refusals?.requestRatio).toBeGreaterThan(0.1);
    expect(refusals?.ordinaryRequestRatio).toBeLessThan(0.001);
    expect(flooded.proposals[0]?.reasons.join(" ")).toContain("1 caller needs more than 10 times");
  });

  it("writes the numbers into the policy, with where they came from", async () => {
    const { text } = await recommend({ requests: () => everyMinute(30, 200, 6) });
    const whys = {
      hits:
        "for 2 times what 30 callers sent in 1 day; refuses 0 % of them on a day; " +
        "no band: fewer than 3 days",
      burst: "what that needs at once at this rate; no band: fewer than 3 days",
    };
    expect(text).toContain(`        - key: user
          rate_limit:
            unit: minute
            requests_per_unit: 15 # ${whys.hits}
            burst: 15 # ${whys.burst}
        - key: unmet
          rate_limit: {unit: day, requests_per_unit: 1}
`);
  });

  it("fits each limit of a rule in its own period, and windows to what they hold", async () => {
    const limits = `rate_limits:
            - {name: pace, unit: second, requests_per_unit: 50}
            # Kept.
            - {name: total, unit: hour, requests_per_unit: 1, algorithm: fixed_window}
            - {name: month, unit: month, requests_per_unit: 9, time_zone: UTC}`;
    const { proposals, text } = await recommend({
      text: policyWith(limits),
      requests: () => everyMinute(30, 200, 6),
    });
    expect(
      proposals.map(({ limit, hits, burst, periodSeconds }) => {
        return [limit, hits.value, burst.value, periodSeconds];
      }),
    ).toEqual([
      ["pace", 1, 15, 1],
      ["total", 1_000, 1_000, 3_600],
    ]);
    expect(text).toMatch(/# Kept\.\n {12}- name: total\n.*\n {14}requests_per_unit: 1000 # for/);
    expect(text).not.toMatch(/fixed_window\n *burst/);
    expect(text).toContain("{name: month, unit: month, requests_per_unit: 9, time_zone: UTC}");
  });

  it("has one number for limits in files of envoyproxy/ratelimit", async () => {
    const text = `domain: shop
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 1}
`;
    const services = policyWith("rate_limit: {unit: day, requests_per_unit: 1}");
    const sources = [
      { file: "a.yaml", text },
      {
        file: "b.yaml",
        text: services.replace(/ {2}rateLimits:[\s\S]*? {2}services/, "  services"),
      },
    ];
    const parsed = parsePolicy(sources);
    if (parsed.kind === "problems") throw new Error(parsed.problems[0]?.message);
    const recommended = await recommendLimits({
      sources,
      policy: buildPolicy("test", parsed),
      forAll: undefined,
      options: { refusedCallerRatioMax: 0.01, refusedRequestRatioMax: 0.001, headroom: 1 },
      readLogs: async (take) => {
        for (const { user, timeUs } of everyMinute(30, 200, 6)) take(requestOf(user, timeUs));
      },
      digest: sha256,
      nameOf: (name) => name,
      random: new FakeRandom(1),
    });
    const edited = recommended.kind === "recommended" ? recommended.sources[0]?.text : "";
    expect(edited).toContain("    requests_per_unit: 7 # for 1 times");
    expect(edited).not.toContain("burst");
  });

  it("refuses nothing of a bucket that all share, and needs no callers", async () => {
    const { proposals, demands } = await recommend({
      text: policyWith(
        "rate_limit: {unit: minute, requests_per_unit: 1}",
        "key: user\n          value: user-0",
      ),
      requests: () => everyMinute(2, 1_200, 3),
    });
    expect(demands[0]?.isShared).toBe(true);
    expect(proposals[0]).toMatchObject({ hits: { value: 7 }, burst: { value: 7 } });
    expect(proposals[0]?.hits.why).toMatch(/^for 2 times all requests in 1 day/);
    expect(proposals[0]?.refusals.requestRatio).toBe(0);
  });

  it("fits more callers where a few refused ones send too many requests", async () => {
    // 1 in 100 callers sends 8 at once each minute, all others one in 20 minutes.
    function* requests(): Generator<{ timeUs: number; user: string }> {
      for (let minute = 0; minute < 1_000; minute += 1) {
        const timeUs = firstDayUs + minute * minuteUs;
        for (let i = 0; i < 8; i += 1) yield { timeUs, user: "busy" };
        for (let i = minute % 20; i < 100; i += 20) yield { timeUs, user: `user-${i}` };
      }
    }
    const few = await recommend({ requests, refusedRequestRatioMax: 0.001 });
    expect(few.proposals[0]?.refusals.requestRatio).toBe(0);
    expect(few.proposals[0]?.hits.value).toBeGreaterThanOrEqual(15);
    const many = await recommend({ requests, refusedRequestRatioMax: 1 });
    expect(many.proposals[0]?.hits.value).toBeLessThan(5);
    expect(many.proposals[0]?.refusals.requestRatio).toBeGreaterThan(0.3);
  });

  it("proposes nothing from too little, and says what is missing", async () => {
    const little = await recommend({ requests: () => everyMinute(3, 30) });
    expect(little.proposals).toEqual([]);
    expect(little.notEnough).toEqual([
      {
        subject: "shop/user",
        missing: [
          "90 requests; 1,000 are needed, about 12 times as many",
          "3 callers; 20 are needed",
          "the log covers 29m; 1 h is needed",
        ],
      },
    ]);
    expect(little.text).toBe(perMinute);
    const none = await recommend({ requests: () => [] });
    expect(none).toMatchObject({ demands: [], proposals: [], notEnough: [] });
  });

  it("follows a part of callers that are too many, and says how far off it is", async () => {
    const log: GeneratedLog = { ...week, days: 3, callers: 3_000, perDay: 30_000, zipf: 0 };
    const bounds = { callersMax: 1_000, callerDaysMax: 2_000 };
    const [all, sampled] = [
      await recommend({ requests: () => generateRequests(log) }),
      await recommend({ requests: () => generateRequests(log), bounds }),
    ];
    expect(sampled.demands[0]?.sampledRatio).toBe(0.25);
    expect(sampled.demands[0]?.callerCount).toBeGreaterThan(2_600);
    expect(sampled.demands[0]?.callerCount).toBeLessThan(3_400);
    expect(sampled.proposals[0]?.hits.value).toBe(all.proposals[0]?.hits.value);
    expect(sampled.proposals[0]?.burst.value).toBe(all.proposals[0]?.burst.value);
    expect(sampled.proposals[0]?.reasons.at(-1)).toMatch(
      /^Callers with many requests were all followed, and of the others 1 in 4,/,
    );
  });

  it("leaves out days beyond those that it can tell apart", async () => {
    function* requests(): Generator<{ timeUs: number; user: string }> {
      yield* everyMinute(30, 200);
      for (let day = 1; day < 200; day += 1) {
        yield { timeUs: firstDayUs + day * 1_440 * minuteUs, user: "later" };
      }
    }
    const { warnings, demands } = await recommend({ requests });
    expect(demands[0]?.dayCount).toBe(92);
    expect(warnings[0]).toBe(
      "108 requests are on further days than the first 92 that the log has, and were left out.",
    );
  });
});
