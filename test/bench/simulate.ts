import { sha256 } from "../../src/app/base/sha256.js";
import { keepNewObjectsYoung } from "../../src/app/base/v8-flags.js";
import { readScenario } from "../../src/cli/simulate/scenario-input.js";
import { processOutput } from "../../src/cli/terminal/context.js";
import { runScenario } from "../../src/simulate/report/run-summary.js";
import { agreementCases, runAgreement } from "../simulation/agreement.js";
import { layOut } from "./report.js";

/** How far a figure may be from the formula's. */
const errorRatioMax = 0.03;

/** What the simulator showed, and whether it agrees with the formulas. */
export interface SimulateReport {
  readonly text: string;
  readonly isNear: boolean;
}

/** The simulator against queueing theory, and how fast it is. */
export async function tellSimulate(requestCount: number): Promise<SimulateReport> {
  keepNewObjectsYoung();
  const speed = [["run", "requests", "CPU s", "requests per CPU s"]];
  for (const kind of ["no policy", "admission", "admission and limits"] as const) {
    speed.push(await measureSpeed(kind, requestCount));
  }
  const errors: number[] = [];
  const rows: string[][] = [];
  for (const one of agreementCases) {
    const found = await runAgreement(one, requestCount);
    const error = found / one.expected - 1;
    errors.push(Math.abs(error));
    const figures = [one.expected.toFixed(4), found.toFixed(4), `${(100 * error).toFixed(2)} %`];
    rows.push([one.name, one.figure, ...figures, one.source]);
  }
  const titles = ["station", "figure", "formula", "here", "off", "source"];
  const isNear = Math.max(...errors) <= errorRatioMax;
  return { text: `${layOut([titles, ...rows])}\n\n${layOut(speed)}`, isNear };
}

const scenarioText = (seconds: number, policy: string): string => `
${policy}
duration: ${seconds}s
services:
  - {name: api, workers: 100, serviceTime: 10ms}
callers:
  - {name: web, rate: 10000, classes: {critical: 0.1, low: 0.3},
     keys: {header: x-user, count: 1000, zipf: 1}}
`;

const policyText = (limits: string): string => `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: bench}
spec:
  rateLimits:
    - domain: edge
      descriptors: [{key: user, rate_limit: {requests_per_unit: 500, unit: second}}]
  services:
    - {name: api, priority: {from: {trust: {anyone: true}}}, ${limits} admission: {}}
`;

async function measureSpeed(
  kind: "no policy" | "admission" | "admission and limits",
  requestCount: number,
): Promise<string[]> {
  const seconds = Math.ceil(requestCount / 10_000);
  const limits =
    kind === "admission"
      ? ""
      : "rateLimit: {domain: edge, descriptors: [[{header: x-user, as: user}]]},";
  const isLimited = kind !== "no policy";
  const text = scenarioText(seconds, isLimited ? "policy: policy.yaml" : "");
  const policies = isLimited ? [{ file: "policy.yaml", text: policyText(limits) }] : [];
  const input = readScenario({ scenario: { file: "bench.yaml", text }, policies }, processOutput);
  const before = process.cpuUsage();
  const control = { goesOn: async () => true };
  const { summary } = await runScenario({ ...input, digest: sha256 }, { label: "", control });
  const { user, system } = process.cpuUsage(before);
  const cpuSeconds = (user + system) / 1_000_000;
  const { offered } = summary.total;
  const perSecond = Math.round(offered / cpuSeconds);
  return [
    kind,
    offered.toLocaleString("en"),
    cpuSeconds.toFixed(1),
    perSecond.toLocaleString("en"),
  ];
}
