import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CliFolder, captureCli } from "../../../support/cli.js";

const policyText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  services:
    - name: api
      priority: {from: {trust: {anyone: true}}}
      admission: {maxInFlight: 4}
`;

const scenarioText = `
description: A <b>small</b> service & its callers.
policy: policy.yaml
duration: 5s
services:
  - {name: api, workers: 4, serviceTime: 20ms}
callers:
  - {name: "<script>alert(1)</script>", rate: 400, classes: {critical: 0.2}}
events:
  - {at: 2s, for: 1s, slow: {factor: 2}}
objectives: [served <= 0.9, goodput >= 0.3]
`;

let folder: CliFolder;
let scenario: string;

beforeEach(async () => {
  folder = await CliFolder.create();
  await folder.write("policy.yaml", policyText);
  scenario = await folder.write("shop.scenario.yaml", scenarioText);
});

afterEach(async () => {
  await folder.remove();
});

function simulate(...args: readonly string[]) {
  return captureCli(["simulate", ...args]);
}

describe("headgate simulate", () => {
  it("prints what came of it, the same each time", async () => {
    const first = await simulate(scenario);
    expect(first.err).toBe("");
    expect(first.out).toContain("5 s simulated, seed 1");
    expect(first.out).toMatch(/refused +[\d,]+ +\d/);
    expect(first.out).toContain("✓ goodput >= 0.3");
    expect(first.code).toBe(0);
    expect((await simulate(scenario)).out).toBe(first.out);
    expect((await simulate(scenario, "--seed", "7")).out).not.toBe(first.out);
  });

  it("takes a policy of several files from its folder", async () => {
    const { out } = await simulate(scenario);
    await mkdir(join(folder.path, "policy"));
    const room =
      "  waitingRooms: [{name: lobby, service: api, page: {templateFile: lobby.html}}]\n";
    await folder.write("policy/policy.yaml", `${policyText}${room}`);
    await folder.write("policy/lobby.html", "<p>{{position}}");
    await folder.write("shop.scenario.yaml", scenarioText.replace("policy.yaml", "policy"));
    expect(await simulate(scenario)).toEqual({ code: 0, err: "", out });
  });

  it("prints JSON, whose fields add up", async () => {
    const { out } = await simulate(scenario, "-o", "json");
    const result: unknown = JSON.parse(out);
    expect(result).toMatchObject({
      version: 1,
      scenario: "shop",
      isMet: true,
      runs: [{ label: "", seed: 1, durationMs: 5_000, objectives: [{ isMet: true }, {}] }],
    });
    const [run] = (result as { runs: { total: Record<string, number> }[] }).runs;
    const {
      offered = 0,
      served = 0,
      late = 0,
      refused = 0,
      failed = 0,
      abandoned = 0,
      open = 0,
    } = run?.total ?? {};
    expect(offered).toBeGreaterThan(1_500);
    expect(served + late + refused + failed + abandoned + open).toBe(offered);
  });

  it("compares settings side by side, and misses objectives with exit code 4", async () => {
    const { out, code } = await simulate(
      scenario,
      "--vary",
      "maxInFlight=1,4",
      "--vary",
      "workers=4,8",
    );
    expect(code).toBe(4);
    expect(out).toContain("maxInFlight=1 workers=4");
    expect(out).toContain("maxInFlight=4 workers=8");
    expect(out).toContain("✗");
  });

  it("writes a report in which names do nothing, and all series", async () => {
    const html = join(folder.path, "report.html");
    const csv = join(folder.path, "series.csv");
    await simulate(scenario, "--html", html, "--csv", csv);
    const page = readFileSync(html, "utf8");
    expect(page).not.toContain("<script");
    expect(page).not.toContain("<b>small");
    expect(page).not.toMatch(/(?:src|href)=/);
    expect(page).toContain("Content-Security-Policy");
    expect(page).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    const svgCount = page.split("<svg viewBox").length - 1;
    expect(svgCount).toBe(7);
    const titles = [...page.matchAll(/<h3>([^<]*)/g)].map(([, title]) => title);
    expect(titles).toContain("Refused, by cause");
    expect(titles).toContain("Refused, by class");
    expect(page.split("<details>").length - 1).toBe(svgCount);
    const rows = readFileSync(csv, "utf8").trim().split("\r\n");
    expect(rows.length).toBe(1 + 5);
    expect(rows[0]).toMatch(/^run,second,offered,attempts,/);
  });

  it("plots and tabulates retries, the store, replicas and Envoys", async () => {
    const html = join(folder.path, "fleet.html");
    const text = scenarioText
      .replace("classes:", "retries: {attempts: 2, backoff: 10ms}, classes:")
      .replace("services:", "fleet: {envoys: 3, headgates: 2}\nservices:");
    await simulate(await folder.write("fleet.yaml", text), "--html", html);
    const page = readFileSync(html, "utf8");
    const figures = page.split("<figure>").slice(1);
    const titles = figures.map((figure) => /<h3>([^<]*)/.exec(figure)?.[1]);
    expect(titles).toEqual([
      "Requests",
      "Refused, by cause",
      "Refused, by class",
      "Latency",
      "In flight and limit: api",
      "Load: api",
      "Retries",
      "Amplification",
      "Calls to the store",
      "Decisions, by replica",
      "Attempts, by Envoy",
    ]);
    for (const figure of figures) expect(figure).toContain("<table>");
    expect(figures[9]).toContain("headgate2");
    expect(figures[2]).toContain("critical");
  });

  it("keeps the names of events apart", async () => {
    const html = join(folder.path, "events.html");
    const events = "- {at: 2500ms, store: {state: away}}\n  - {at: 2600ms, slow: {factor: 2}}";
    const text = scenarioText.replace("events:", `events:\n  ${events}`);
    await simulate(await folder.write("events.yaml", text), "--html", html);
    const [figure = ""] = readFileSync(html, "utf8").split("<figure>").slice(1);
    const names = [...figure.matchAll(/y="(\d+)">(?:work takes|store)/g)].map(([, y]) => y);
    expect(names.length).toBeGreaterThan(1);
    expect(new Set(names).size).toBeGreaterThan(1);
  });

  it.each([
    ["a folder that is not there", "none/report.html", "no such file or directory"],
    ["a folder", ".", "it is a directory"],
  ])("refuses to write %s before it simulates", async (_, path, words) => {
    const { code, err, out } = await simulate(scenario, "--csv", join(folder.path, path));
    expect(err).toContain(`cannot be written: ${words}`);
    expect(out).toBe("");
    expect(code).toBe(1);
  });

  it("lists the scenarios of the package, which run by their names", async () => {
    const { out, code } = await simulate("--list");
    expect(code).toBe(0);
    expect(out).toContain("retry-storm");
    const { err } = await simulate("retry-strom");
    expect(err).toContain("Did you mean retry-storm?");
  });

  it.each([
    ["no scenario", [], 2, "name a scenario"],
    ["a file that is not there", ["./none.yaml"], 1, "no such file"],
    ["a seed that is none", ["retry-storm", "--seed", "-1"], 2, "--seed"],
    [
      "too many runs",
      ["retry-storm", "--vary", "seed=1,2,3,4,5,6,7,8,9,10,11,12,13"],
      2,
      "more than 12",
    ],
    ["a place that is not there", ["retry-storm", "--vary", "lax=1"], 2, "neither the scenario"],
  ] as const)("refuses %s", async (_, args, code, words) => {
    const run = await simulate(...args);
    expect(run.err).toContain(words);
    expect(run.code).toBe(code);
  });

  it("refuses a bad scenario and a bad policy with places and exit code 3", async () => {
    await folder.write("policy.yaml", policyText.replace("maxInFlight: 4", "maxInFlight: none"));
    const { code, err } = await simulate(scenario);
    expect(code).toBe(3);
    expect(err).toMatch(/policy\.yaml:8:\d+: HG140/);
    const other = await folder.write("bad.yaml", scenarioText.replace("rate: 400", "rate: -4"));
    expect((await simulate(other)).err).toMatch(/bad\.yaml:8:\d+: HG141 "-4" is out of range/);
    const varied = await simulate(scenario, "--vary", "callers.0.rate=many");
    expect(varied.code).toBe(2);
  });

  it.each([
    ["", "has no numbers"],
    ["1\n2\nx\n", "trace.txt:3: this is not a number"],
    ["1\n-2\n", "trace.txt:2"],
    ["9".repeat(10_000), "trace.txt:1"],
  ])("refuses the trace %j", async (text, words) => {
    await folder.write("trace.txt", text);
    const traced = scenarioText.replace("rate: 400", "rate: {trace: {file: trace.txt}}");
    const { code, err } = await simulate(await folder.write("traced.yaml", traced));
    expect(err).toContain(words);
    expect(code).toBe(3);
  });

  // It says that it has no bytes, and ended the process.
  it("refuses a trace without an end", async () => {
    const traced = scenarioText.replace("rate: 400", "rate: {trace: {file: /dev/zero}}");
    const { code, err } = await simulate(await folder.write("traced.yaml", traced));
    expect(err).toContain("/dev/zero has more than 1,000,000 lines");
    expect(code).toBe(3);
  });

  it("runs a trace", async () => {
    await folder.write("trace.txt", "# requests per second\n100\n300\n");
    await folder.write("times.txt", "10\n30\n");
    const traced = scenarioText
      .replace("rate: 400", "rate: {trace: {file: trace.txt}}")
      .replace("serviceTime: 20ms", "serviceTime: {trace: times.txt}");
    const { code, out } = await simulate(await folder.write("traced.yaml", traced));
    expect(out).toContain("simulated");
    expect(code).toBe(0);
  });
});
