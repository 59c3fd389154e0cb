import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { captureCli } from "../support/cli.js";
import { startPrometheus } from "../support/prometheus.js";
import { useStage } from "../support/stage.js";

const stage = useStage("file");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: everyone
          value: all
          rate_limit: {unit: minute, requests_per_unit: 50}
        - key: plan
          value: free-*
          detailed_metric: true
          rate_limit: {unit: minute, requests_per_unit: 50}
        - key: user
          rate_limit: {unit: minute, requests_per_unit: 50}
`;

const minuteMs = 60_000;
const stepMinutes = 5;
const days = 3;

/** Counters of three days, a value a minute, which grow by what callers ask for in a minute. */
function samplesUpTo(endMs: number): string {
  const lines: string[] = [];
  const add = (name: string, perMinute: (minute: number) => number): void => {
    let value = 0;
    for (let minute = -20 - days * 1_440; minute <= 0; minute += 1) {
      value += perMinute(minute);
      lines.push(`${name} ${value} ${(endMs + minute * minuteMs) / 1_000}`);
    }
  };
  const shared = (outcome: string) =>
    `headgate_hits_total{domain="shop",rule="everyone_all",outcome="${outcome}"}`;
  add(shared("within"), () => 300);
  add(shared("over"), () => 60);
  add(shared("refunded"), () => 1_000);
  const caller = (name: string) => {
    const labels = `domain="shop",rule="plan_free-*",path="${name}",outcome="within"`;
    return `headgate_detailed_hits_total{${labels}}`;
  };
  for (let i = 0; i < 29; i += 1) {
    // Every six hours, each has one step with ten times as many.
    const isBusy = (minute: number) => Math.floor((minute - 1) / stepMinutes) % 72 === -i;
    add(caller(`plan_free-${i}`), (minute) => (isBusy(minute) ? 40 : 4));
  }
  add(caller("plan_free-crawler"), () => 600);
  add('headgate_decisions_total{domain="shop",rule="user",outcome="ok"}', () => 120);
  return `${lines.join("\n")}\n# EOF\n`;
}

it("finds the limits of rules whose hits a real Prometheus has", async () => {
  const stepMs = stepMinutes * minuteMs;
  const url = await startPrometheus(stage, samplesUpTo(Math.floor(Date.now() / stepMs) * stepMs));
  const policyPath = join(stage.folder, "policy.yaml");
  const editedPath = join(stage.folder, "edited.yaml");
  await writeFile(policyPath, policy);
  const args = ["recommend", "--policy", policyPath, "--prometheus", url, "--show-keys"];
  const times = ["--range", `${days}d`, "--step", `${stepMinutes}m`, "--write", editedPath];
  const { code, out, err } = await captureCli([...args, ...times, "-o", "json"]);
  expect(err).toBe("");
  expect(code).toBe(0);
  const { demands, proposals, notEnough } = JSON.parse(out).recommendation;
  const [shared, detailed] = ["everyone_all", "plan_free-*"].map((rule) =>
    proposals.find((one: { readonly rule: string }) => one.rule === rule),
  );
  const dayHits = demands.find((one: { readonly rule: string }) => one.rule === "everyone_all");
  expect(dayHits.requestCount / (360 * 1_440 * days)).toBeCloseTo(1, 2);
  // 360 a minute with headroom; two steps at once are 3,600.
  expect(shared).toMatchObject({ stepSeconds: 300, hits: { value: 700 }, burst: { value: 5_000 } });
  expect(shared.refusals).toMatchObject({ requestRatio: 0, callers: [] });
  // 4 a minute, and 220 in two steps.
  expect(detailed).toMatchObject({ hits: { value: 7 }, burst: { value: 300 } });
  expect(detailed.hits.band).toMatchObject({ low: 7, high: 7 });
  expect(detailed.refusals.ordinaryRequestRatio).toBe(0);
  expect(detailed.refusals.callers).toMatchObject([{ name: "plan_free-crawler", isOutlier: true }]);
  expect(detailed.heldOut.predictedRatio).toBe(0);
  expect(notEnough).toMatchObject([
    { subject: "shop/user", missing: [expect.stringContaining("2 hits per second at most")] },
  ]);
  expect(await captureCli(["check", editedPath])).toMatchObject({ code: 0 });
});
