import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.js";
import { type DropIn, reported, startDropIn } from "../support/drop-in.js";
import { redisEnv, startRedis } from "../support/redis.js";
import type { RlsAsk } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";

/**
 * Each test begins with the id of a row in the documented table of differences, and shows what the
 * row says of files; drop-in-service-differences does so for rows about the process.
 */
const policy = `domain: edge
descriptors:
  - {key: daily, rate_limit: {unit: day, requests_per_unit: 1000}}
  - {key: hourly, rate_limit: {unit: hour, requests_per_unit: 10}}
  - {key: other, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: monthly, rate_limit: {unit: month, requests_per_unit: 10}}
  - {key: a, value: b_c, rate_limit: {unit: year, requests_per_unit: 2}}
  - {key: a_b, value: c, rate_limit: {unit: year, requests_per_unit: 3}}
  - {key: x*z, rate_limit: {unit: year, requests_per_unit: 4}}
  - key: renamed
    detailed_metric: true
    metadata: {team: edge}
    rate_limit: {unit: year, requests_per_unit: 10}
`;

/** The switches that bring back what envoyproxy/ratelimit does. */
const asThere = {
  HEADGATE_ALGORITHM: "fixed_window",
  HEADGATE_ON_STORE_FAILURE: "error",
  HEADGATE_CHARGE_DENIED: "true",
};

const stage = useStage("file");
let usual: DropIn;
let switched: DropIn;

beforeAll(async () => {
  [usual, switched] = await Promise.all([
    startDropIn(stage, { policy, env: { RESPONSE_DYNAMIC_METADATA: "true" } }),
    startDropIn(stage, { policy, env: asThere }),
  ]);
});

/** The first status's time until reset, in whole seconds. */
async function resetSeconds({ client }: DropIn, question: RlsAsk): Promise<number> {
  const answer = await client.ask(question);
  if (answer.kind === "failed") throw new Error(answer.details);
  return Number(answer.response.statuses[0]?.durationUntilReset?.seconds);
}

/** Seconds until the next multiple of so many since 1970. */
function untilEdgeSeconds(lengthSeconds: number): number {
  return lengthSeconds - ((Date.now() / 1_000) % lengthSeconds);
}

/** Time that may pass between two looks at the clock on a busy machine. */
const toleranceSeconds = 10;

function expectNear(seconds: number, wantedSeconds: number): void {
  expect(Math.abs(seconds - wantedSeconds)).toBeLessThan(toleranceSeconds);
}

describe("differences in what limits do", () => {
  it("smooth-limits: a full day's hits at once, then one as each drains; or windows", async () => {
    const all = { descriptors: [["daily=a"]], hits: 1_000 };
    const one = { descriptors: [["daily=a"]] };
    const next: number[] = [];
    for (const service of [usual, switched]) {
      expect(await service.askAll(all)).toBe("OK: 0/1000");
      expect(await service.askAll(one)).toBe("OVER: over 0/1000");
      next.push(await resetSeconds(service, one));
    }
    // The next of a thousand a day drains in 86.4 s: with those after it, 999 more on that day.
    expectNear(next[0] ?? 0, 87);
    expectNear(next[1] ?? 0, untilEdgeSeconds(86_400));
    const report = await captureCli(["check", "--ratelimit", await folderWith(policy)]);
    expect(report.out).toMatch(/daily +1,000 a day +2,000, here 1,000 +1,000, here 1,999/);
  });

  it("store-failure: each replica's share goes on limiting; or calls fail", async () => {
    const answers = async (env: Readonly<Record<string, string>>): Promise<readonly string[]> => {
      const redis = await startRedis(stage);
      const { ask } = await startDropIn(stage, {
        policy,
        env: { ...redisEnv(redis.port), ...env },
      });
      const before = await ask("other=a");
      await redis.kill();
      return [before, await ask("other=a")];
    };
    // A fifth of ten, of which one is used.
    const [own, there] = await Promise.all([answers({ HEADGATE_REPLICAS: "5" }), answers(asThere)]);
    expect(own).toEqual(["OK: 9/10", "OK: 1/10"]);
    expect(there).toEqual(["OK: 9/10", "UNAVAILABLE"]);
  });

  it("denied-hits: a denied request charges none of its limits; or all of them", async () => {
    const both = { descriptors: [["hourly=denied"], ["other=denied"]], hits: 4 };
    const peek = { descriptors: [{ entries: ["other=denied"], hits: 0n }] };
    for (const [service, left] of [
      [usual, "OK: 10/10"],
      [switched, "OK: 6/10"],
    ] as const) {
      await service.askAll({ descriptors: [["hourly=denied"]], hits: 8 });
      expect(await service.askAll(both)).toMatch(/^OVER: over 0\/10/);
      expect(await service.askAll(peek)).toBe(left);
    }
  });

  it("later-costs: what follows a call of zero hits is charged, up to one more burst", async () => {
    for (const service of [usual, switched]) {
      const ask = (hits: bigint, isRefund = false): Promise<string> =>
        service.askAll({ descriptors: [{ entries: ["other=later"], hits, isRefund }] });
      expect(await ask(0n)).toBe("OK: 10/10");
      for (let count = 0; count < 3; count += 1) await ask(9n);
      expect(await ask(0n)).toBe("OVER: over 0/10");
      // 27 of 10 are a debt of 10: the last 7 are forgiven.
      expect(await ask(11n, true)).toBe("OK: 1/10");
    }
  });

  it("later-costs: a debt comes back at the rate; or all of it where a window ends", async () => {
    const next: number[] = [];
    for (const service of [usual, switched]) {
      const ask = { entries: ["other=debt"] };
      for (const hits of [0n, 9n, 9n]) await service.askAll({ descriptors: [{ ...ask, hits }] });
      next.push(await resetSeconds(service, { descriptors: [{ ...ask, hits: 0n }] }));
    }
    // 8 above the limit, at 10 a year.
    const yearSeconds = 31_536_000;
    expectNear(next[0] ?? 0, 0.8 * yearSeconds);
    expectNear(next[1] ?? 0, untilEdgeSeconds(yearSeconds));
  });

  it("retry-time: until the caller's own request fits, or until nothing is used", async () => {
    const ask = (hits: number): RlsAsk => ({ descriptors: [["hourly=retry"]], hits });
    expectNear(await resetSeconds(usual, ask(10)), 3_600);
    expectNear(await resetSeconds(usual, ask(1)), 360);
    expectNear(await resetSeconds(usual, ask(5)), 1_800);
    for (const hits of [10, 1, 5]) {
      expectNear(await resetSeconds(switched, ask(hits)), untilEdgeSeconds(3_600));
    }
  });

  it("carried-limits: each size by itself, beginning with what was used; or together", async () => {
    const answersOf = async (service: DropIn, sizes: readonly number[]) => {
      const answers: string[] = [];
      for (const perDay of sizes) {
        answers.push(await service.askAll({ descriptors: [{ entries: ["carried=a"], perDay }] }));
      }
      return answers;
    };
    const raised = ["OK: 1/2", "OK: 0/2", "OVER: over 0/2", "OK: 6/9"];
    expect(await answersOf(usual, [2, 2, 2, 9])).toEqual(raised);
    // So few a day that none comes back before the next is asked for.
    expect(await answersOf(usual, [1_000, 2, 9])).toEqual([
      "OK: 996/1000",
      "OVER: over 0/2",
      "OK: 5/9",
    ]);
    expect(await answersOf(switched, [2, 2, 9])).toEqual(["OK: 1/2", "OK: 0/2", "OK: 6/9"]);
    expect(await answersOf(switched, [1_000, 9])).toEqual(["OK: 996/1000", "OK: 4/9"]);
  });

  it("key-and-value: `a` with `b_c` is not `a_b` with `c`, nor its counter", async () => {
    expect(await usual.ask("a=b_c")).toBe("OK: 1/2");
    expect(await usual.ask("a_b=c")).toBe("OK: 2/3");
  });

  it("key-patterns: a key's pattern asks nothing of the value", async () => {
    expect(await usual.ask("xyz=any")).toBe("OK: 3/4");
    // Joined, this would be xy_z.
    expect(await usual.ask("xy=z")).toBe("OK: -");
  });

  it("kept-metadata: a rule with detailed_metric keeps its metadata", async () => {
    const answer = await usual.client.ask({ descriptors: [["renamed=a"]] });
    expect(answer).toMatchObject({
      response: { dynamicMetadata: { metadata: { team: "edge" } } },
    });
  });

  it("named-refusals: dynamic metadata of a refusal names its rule", async () => {
    const env = { RESPONSE_DYNAMIC_METADATA: "false" };
    const { headgate } = await startDropIn(stage, { policy, env });
    const descriptors = [{ entries: [{ key: "other", value: "named" }] }];
    let reported: unknown;
    for (let i = 0; i < 11; i += 1) {
      expect(reported).toBeUndefined();
      const { body } = await headgate.postJson({ domain: "edge", descriptors });
      reported = JSON.parse(body).dynamicMetadata;
    }
    expect(reported).toEqual({ domain: "edge", rule: "other" });
  });

  it("bounded-keys: values that a caller makes up share one bucket after a while", async () => {
    const env = { HEADGATE_NEW_KEYS_PER_SECOND_MAX: "1" };
    const service = await startDropIn(stage, { policy, env });
    const answers = [];
    for (let i = 0; i < 20; i += 1) answers.push(await service.ask(`other=made-up-${i}`));
    expect(answers[0]).toBe("OK: 9/10");
    expect(answers.some((answer) => answer.startsWith("OVER"))).toBe(true);
    const overflow = await service.headgate.metric("headgate_overflow_descriptors_total");
    expect(overflow).toBeGreaterThan(10);
  });

  it("calendar-time: months of 30 days, or those of the calendar in a time zone", async () => {
    const monthly = { descriptors: [["monthly=a"]] };
    expectNear(await resetSeconds(switched, monthly), untilEdgeSeconds(30 * 86_400));
    const calendar = await startDropIn(stage, {
      policy: `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: calendar}
spec:
  rateLimits:
    - domain: edge
      descriptors:
        - {key: monthly, rate_limit: {unit: month, requests_per_unit: 10, time_zone: UTC}}
`,
    });
    const now = new Date();
    const nextMonthMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1);
    expectNear(await resetSeconds(calendar, monthly), (nextMonthMs - now.getTime()) / 1_000);
    expect(reported(await calendar.client.ask(monthly))).toBe("OK: 8/10");
  });
});

let folderCount = 0;

/** A file of its own for one text, and nothing beside it. */
async function folderWith(text: string): Promise<string> {
  folderCount += 1;
  const path = join(stage.folder, `check-${folderCount}.yaml`);
  await writeFile(path, text);
  return path;
}

/** The ids of what is wrong with each text. */
async function mistakes(...texts: readonly string[]): Promise<readonly (readonly string[])[]> {
  return Promise.all(
    texts.map(async (text) => {
      const { out } = await captureCli(["check", "-o", "json", await folderWith(text)]);
      const problems: readonly { readonly id: string }[] = JSON.parse(out).problems;
      return problems.map(({ id }) => id);
    }),
  );
}

function descriptor(text: string): string {
  return `domain: edge\ndescriptors: [${text}]\n`;
}

function limit(text: string): string {
  return descriptor(`{key: a, rate_limit: {${text}}}`);
}

describe("differences in what files are taken", () => {
  it("misplaced-names: a name in a place where it means nothing is refused", async () => {
    expect(await mistakes(descriptor("{key: a, unit: day}"))).toEqual([["HG120"]]);
  });

  it("lost-text: a name that stands twice is refused, and a second document", async () => {
    const twice = "domain: edge\ndomain: other\n";
    expect(await mistakes(twice, "domain: edge\n---\ndomain: other\n")).toEqual([
      ["HG103"],
      ["HG106"],
    ]);
  });

  it("doubtful-numbers: plain digits and hexadecimal numbers are taken, others not", async () => {
    const hits = (text: string): string => limit(`unit: day, requests_per_unit: ${text}`);
    const [octal, grouped, binary, hexadecimal, plain] = await mistakes(
      ...["010", "1_000", "0b11", "0x10", "10"].map(hits),
    );
    expect([octal, grouped, binary].map((ids) => ids?.length)).toEqual([1, 1, 1]);
    expect([hexadecimal, plain]).toEqual([[], []]);
  });

  it("limit-names: a name that would break a header is refused", async () => {
    const names = ['"', "\\\\", ",", ";", "|", "\u00e9"].map((sign) => {
      return limit(`unit: day, requests_per_unit: 1, name: "a${sign === '"' ? '\\"' : sign}b"`);
    });
    expect(await mistakes(...names)).toEqual(names.map(() => ["HG132"]));
  });

  it("lost-metadata-numbers: a number that would be rounded is refused, and `<<`", async () => {
    const rounded = descriptor("{key: a, metadata: {n: 9007199254740993}}");
    const merged = descriptor("{key: a, metadata: {m: &m {x: 1}, n: {<<: *m}}}");
    expect(await mistakes(rounded, merged)).toEqual([["HG134"], ["HG104"]]);
  });

  it("ignored-unit: a unit beside `unlimited` is refused, known or not", async () => {
    const [ids] = await mistakes(limit("unlimited: true, unit: fortnight"));
    expect(ids).toContain("HG126");
  });

  it("bounds: 32 levels are taken, 33 not", async () => {
    const levels = (count: number): string => {
      const nested = Array.from({ length: count }, () => "{key: a").join(", descriptors: [");
      return descriptor(`${nested}}${"]}".repeat(count - 1)}`);
    };
    const [most, tooMany] = await mistakes(levels(32), levels(33));
    expect(most).toEqual([]);
    expect(tooMany).toHaveLength(1);
  });
});
