import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import {
  type RecommendationJob,
  recommendFor,
} from "../../../../src/console/worker/recommendation-job.js";
import { generatedCsv } from "../../../support/generated-log.js";

const policy = {
  file: "policy.yaml",
  text: `apiVersion: headgate.dev/v1alpha1
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
      hosts: [orders.example]
      rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}]]}
`,
};

/** A log of three days, with one caller far above others. */
const wild = { bursts: 2, size: 100 };
const csv = generatedCsv({ seed: 1, days: 3, callers: 60, perDay: 500, zipf: 0.5, wild })
  .replace("x-user", "x-user,authority")
  .replaceAll(/^(2.*)$/gm, "$1,orders.example");

async function recommend(
  log: string | Uint8Array<ArrayBuffer>,
  more: Partial<RecommendationJob> = {},
) {
  const passes: number[] = [];
  const job: RecommendationJob = {
    log: new File([log], "access.log"),
    format: "auto",
    policies: [policy],
    per: "",
    period: "1m",
    refusedCallerRatioMax: 0.01,
    isFixed: false,
    secret: { a: 5, b: 6, c: 7, d: 8 },
    ...more,
  };
  const outcome = await recommendFor(job, (ratio, pass) => {
    expect(ratio).toBeLessThanOrEqual(1);
    passes.push(pass);
  });
  return { outcome, passes: [...new Set(passes)] };
}

describe("recommendFor()", () => {
  it("proposes an edit of the policy, and names no caller", async () => {
    const { outcome, passes } = await recommend(csv);
    if (outcome.kind === "refused") throw new Error(outcome.message);
    expect(passes).toEqual([1, 2]);
    expect(outcome.lineCount).toBe(csv.trim().split("\n").length - 1);
    expect(outcome.unreadableCount).toBe(0);
    expect(outcome.files?.[0]?.text).toMatch(/requests_per_unit: \d+ # for [\d.]+ times/);
    expect(outcome.html).toMatch(/caller-[0-9a-f]{8}.*far above others/s);
    for (const text of [outcome.html, JSON.stringify(outcome.markup)]) {
      expect(text).not.toMatch(/wild|user-\d/);
    }
  });

  it("reads what gzip has compressed, and a limit that the policy does not have", async () => {
    const plain = await recommend(csv);
    expect((await recommend(gzipSync(csv))).outcome).toEqual(plain.outcome);
    const other = { per: "caller=@x-user", period: "10s" };
    const { outcome } = await recommend(csv, other);
    if (outcome.kind === "refused") throw new Error(outcome.message);
    expect(outcome.files?.[0]?.text).toContain("key: caller");
  });

  it("tells of services what the durations of requests say", async () => {
    const timed = csv.replace(/^.*$/m, "$&,duration").replaceAll(/^(2.*)$/gm, "$1,12");
    const { outcome } = await recommend(timed);
    if (outcome.kind === "refused") throw new Error(outcome.message);
    expect(outcome.html).toContain("requests of the access log");
  });

  it("proposes nothing where there is too little", async () => {
    const { outcome } = await recommend(csv.split("\n").slice(0, 50).join("\n"));
    expect(outcome).toMatchObject({ kind: "recommended", files: undefined });
  });

  it.each([
    ["nothing", "", {}, "The log is empty."],
    ["another text", "hello\n".repeat(9), {}, "none of its"],
    ["a line without end", "x".repeat(9_000_000), {}, "The log is empty."],
    ["a log in parts", `${csv.slice(0, 9_000)}\n${"x\n".repeat(50)}`, {}, "% of the lines"],
    ["a cut archive", gzipSync(csv).subarray(0, 9_000), {}, "cannot be read to its end"],
    ["no descriptor", csv, { per: "user" }, "write remote_address"],
    ["no period", csv, { per: "a=@x-user", period: "soon" }, "A period is such as"],
    ["a wrong policy", csv, { policies: [{ file: "p.yaml", text: "spec: 1" }] }, "has problems"],
  ])("refuses %s", async (_, log, more, words) => {
    const { outcome } = await recommend(log, more);
    expect(outcome).toEqual({ kind: "refused", message: expect.stringContaining(words) });
  });
});
