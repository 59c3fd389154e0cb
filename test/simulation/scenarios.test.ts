import { describe, expect, it } from "vitest";
import { sha256 } from "../../src/app/base/sha256.js";
import {
  packagedScenarios,
  readScenario,
  readScenarioTexts,
} from "../../src/cli/simulate/scenario-input.js";
import { Simulation } from "../../src/simulate/engine/simulation.js";
import { eventMarks } from "../../src/simulate/report/event-marks.js";
import { simulationHtml } from "../../src/simulate/report/html-report.js";
import { runScenario } from "../../src/simulate/report/run-summary.js";
import type { ScenarioInput } from "../../src/simulate/report/scenario-runs.js";
import { seriesCsv } from "../../src/simulate/report/series-csv.js";
import { simulationJson } from "../../src/simulate/report/simulation-result.js";
import { FakeRandom } from "../support/fake-random.js";
import { endless, noOutput, runInput, scenarioInput } from "../support/scenario-run.js";
import { agreementCases, runAgreement } from "./agreement.js";

/** A scenario of a seed, small, with all that may go wrong in it. */
function drawScenario(seed: number): string {
  const random = new FakeRandom(seed);
  const pick = <T>(...values: readonly T[]): T | undefined =>
    values[Math.floor(random.next() * values.length)];
  const time = pick("20ms", "{fixed: 20ms}", "{pareto: {min: 5ms, max: 2s}}");
  const retries = pick(
    "{attempts: 3}",
    "{attempts: 4, budget: 0.2, jitter: none}",
    "{attempts: 3, hedgeAfter: 30ms}",
  );
  const keepAlive = pick("", "keepAlive: {connections: 5, lifetime: 2s},");
  return `
duration: 8s
warmUp: ${pick("0s", "2s")}
seed: ${seed}
fleet: {envoys: 3, headgates: ${pick(1, 2, 3)}, zones: ${pick(1, 2)},
  zoneLocal: ${pick(true, false)},
  balancing: ${pick("connection", "leastRequest")}, connectionLifetime: ${pick("1s", "9s")},
  store: {latency: ${pick("1ms", "{fixed: 4ms}")}}}
services:
  - {name: api, workers: 10, serviceTime: ${time}, queue: ${pick(0, 20, 100_000)},
     stopsAbandoned: ${pick("yes", "no")}, contention: ${pick(1, 2)}}
callers:
  - {name: a, rate: {ramp: {from: 100, to: 900, end: 6s}}, classes: {critical: 0.2, low: 0.2},
     ${keepAlive} deadline: 200ms, patience: ${pick("200ms", "400ms")}, retries: ${retries},
     keys: {header: x-user, count: 50, zipf: 1}}
  - {name: b, rate: 100, arrivals: ${pick("bursty", "regular")}, deadline: 100ms}
events:
  - {at: 3s, for: 2s, workers: {ratio: ${pick(0, 0.5)}, work: ${pick("lost", "finished")}}}
  - {at: 4s, for: 1s, store: {state: ${pick("away", "slow")}}}
  - {at: 5s, for: 1s, callers: {name: b, factor: 5}}
  - {at: 2s, for: 2s, clock: {behind: 1h}}
  - {at: 6s, slow: {factor: 3}}
  - {at: ${pick("1s", "4500ms")}, for: 700ms, zone: {lost: 1}}
  - {at: ${pick("2s", "4s")}, deploy: {of: headgates, down: 300ms, pause: 100ms}}
  - {at: 1s, deploy: {of: ${pick("envoys", "workers")}, parts: 3, down: 200ms, pause: 0s}}
`;
}

const policyText = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: drawn}
spec:
  rateLimits:
    - domain: edge
      descriptors: [{key: user, rate_limit: {requests_per_unit: 15, unit: second}}]
  services:
    - name: api
      priority: {from: {trust: {anyone: true}}}
      rateLimit: {domain: edge, descriptors: [[{header: x-user, as: user}]], inExtProc: IN}
      admission: {queue: {size: 50, maxWait: 300ms}}
`;

function drawInput(seed: number): ScenarioInput {
  const isInExtProc = String(seed % 2 === 0);
  return scenarioInput(drawScenario(seed), policyText.replace("IN", isInExtProc));
}

describe("scenarios of the package", () => {
  it.each(packagedScenarios())("$name meets its objectives", async ({ path }) => {
    const input = readScenario(await readScenarioTexts(path, noOutput), noOutput);
    const { summary } = await runInput(input);
    expect(input.scenario.description).toBeDefined();
    expect(summary.objectives.length).toBeGreaterThan(0);
    expect(summary.objectives.filter(({ isMet }) => !isMet)).toEqual([]);
  });
});

describe("Simulation", () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8])("loses and makes no request: seed %i", async (seed) => {
    const input = drawInput(seed);
    const { durationMs } = input.scenario;
    const window = { fromMs: 0, toMs: durationMs + 1 };
    const simulation = new Simulation({ ...input, digest: sha256 }, [window]);
    await simulation.run(endless);
    const { record } = simulation;
    const total = record.windows[0]?.sum();
    expect(total?.openCount).toBe(record.openCount);
    expect(record.openCount).toBeLessThan(200);
    expect(total?.offeredCount).toBe(
      record.caller("a").offeredCount + record.caller("b").offeredCount,
    );
    expect(total?.latencies.count).toBe((total?.servedCount ?? 0) + (total?.lateCount ?? 0));
    expect(total?.servedCount).toBeGreaterThan(500);
    const columns = simulation.series.columns;
    const sum = (name: string): number =>
      (columns.get(name) ?? []).reduce((all, value) => all + value, 0);
    expect(sum("offered")).toBe(total?.offeredCount);
    expect(sum("attempts")).toBe(total?.attemptCount);
    for (const values of columns.values()) {
      for (const value of values) expect(value >= 0 || Number.isNaN(value)).toBe(true);
    }
  });

  it("answers nobody before it was asked, and nobody after the deadline in time", async () => {
    const { summary } = await runInput(drawInput(3));
    for (const figures of Object.values(summary.byCaller)) {
      const { p50 = 0, p99 = 0 } = figures.latencyMs ?? {};
      expect(p50).toBeGreaterThan(0);
      expect(p99).toBeGreaterThanOrEqual(p50);
    }
    // Without retries, what is in time took no longer than the deadline.
    const { late, latencyMs } = summary.byCaller["b"] ?? {};
    expect(late).toBe(0);
    expect(latencyMs?.p99).toBeLessThanOrEqual(100 * 1.01);
  });

  it("gives the same bytes for the same seed, and others for another", async () => {
    const bytes = async (seed: number): Promise<string> => {
      const input = drawInput(2);
      const scenario = { ...input.scenario, seed };
      const runs = [await runInput({ ...input, scenario })];
      const marks = eventMarks(scenario);
      const result = { scenario: "drawn", description: "", marks, warmUpMs: 0, runs };
      return [
        simulationHtml(result),
        seriesCsv(runs),
        JSON.stringify(simulationJson(result)),
      ].join();
    };
    const first = await bytes(2);
    expect(await bytes(2)).toBe(first);
    expect(await bytes(9)).not.toBe(first);
  });

  it("stops where it is not to go on, and tells how far it came", async () => {
    const control = { goesOn: async () => false };
    const { summary } = await runScenario(
      { ...drawInput(4), digest: sha256 },
      { label: "", control },
    );
    expect(summary.simulatedMs).toBeLessThan(summary.durationMs);
    expect(summary.total.offered).toBeGreaterThan(0);
  });

  it("compares like with like: another policy sees the same arrivals", async () => {
    const input = drawInput(6);
    const one = await runInput(input);
    const other = await runInput({ ...input, policy: undefined });
    expect(other.summary.total.offered).toBe(one.summary.total.offered);
    expect(other.series.get("offered")).toEqual(one.series.get("offered"));
    expect(other.summary.total.refused).toBe(0);
    expect(one.summary.total.refused).toBeGreaterThan(0);
  });

  it("counts what workers could serve until they were lost, and from then on", async () => {
    const text = `
duration: 4s
services: [{name: api, workers: 10, serviceTime: {fixed: 100ms}}]
callers: [{name: a, rate: 300}]
events: [{at: 2s, workers: {ratio: 0.5}}, {at: 3500ms, workers: {ratio: 1}}]
`;
    const { series } = await runInput(scenarioInput(text));
    expect(series.get("api.possible")).toEqual([100, 100, 50, 75]);
  });

  it("falls back where the store is away, as each limit says", async () => {
    const text = `
duration: 6s
services: [{name: api, workers: 10, serviceTime: 1ms}]
callers: [{name: a, rate: 200, headers: {x-user: ann}}]
events: [{at: 2s, for: 2s, store: {state: away}}]
objectives: []
`;
    const served = async (mode: string): Promise<number> => {
      const limited = policyText.replace(
        "unit: second}",
        `unit: second}, on_store_failure: ${mode}`,
      );
      const { series } = await runInput(scenarioInput(text, limited.replace("IN", "true")));
      return (series.get("served") ?? [])[2] ?? 0;
    };
    expect(await served("allow")).toBeGreaterThan(150);
    expect(await served("deny")).toBe(0);
  });
});

describe("agreement with queueing theory", () => {
  it.each(agreementCases)("$name, by $source", async (one) => {
    const found = await runAgreement(one, 80_000);
    expect(Math.abs(found / one.expected - 1)).toBeLessThan(0.03);
  });
});
