import { describe, expect, it } from "vitest";
import { sha256 } from "../../../../src/app/base/sha256.js";
import { firstScenario } from "../../../../src/console/worker/first-scenario.js";
import {
  readJob,
  runJob,
  type SimulationJob,
} from "../../../../src/console/worker/simulation-job.js";
import { simulationHtml } from "../../../../src/simulate/report/html-report.js";
import { runScenarios } from "../../../../src/simulate/report/scenario-runs.js";

const policy = {
  file: "policy.yaml",
  text: `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: edge
      descriptors: [{key: user, rate_limit: {requests_per_unit: 5, unit: second}}]
  services:
    - name: orders
      priority: {from: {trust: {anyone: true}}}
      rateLimit: {domain: edge, descriptors: [[{header: x-user, as: user}]]}
      admission: {maxInFlight: 4}
`,
};

function scenario(callers: string, more = ""): string {
  return `
duration: 5s
services: [{name: orders, workers: 4, serviceTime: 20ms}]
callers: [${callers}]
objectives: [goodput >= 0.5]
${more}`;
}

const web = "{name: web, rate: 150, keys: {header: x-user, count: 50}, deadline: 200ms}";

function jobOf(text: string, more: Partial<SimulationJob> = {}): SimulationJob {
  const file = { file: "scenario.yaml", text };
  return { scenario: file, policies: [policy], isOwnPolicy: false, variation: "", ...more };
}

const endless = { goesOn: async () => true };

describe("readJob()", () => {
  it("tells what is wrong in a scenario and in a policy, with places", () => {
    const [problem] = readJob(jobOf(scenario("{name: web, rat: 1}"))).problems;
    expect(problem).toMatchObject({ file: "scenario.yaml", line: 4, id: "HG120" });
    expect(problem?.hint).toContain("Did you mean rate?");
    const text = policy.text.replace("unit: second", "unit: secnd");
    const wrong = readJob(jobOf(scenario(web), { policies: [{ ...policy, text }] }));
    expect(wrong.problems).toMatchObject([{ file: "policy.yaml", line: 7, column: 74 }]);
    expect(wrong.inputs).toEqual([]);
  });

  it("notes services that the policy does not have", () => {
    const other = scenario(web).replace("name: orders", "name: billing");
    expect(readJob(jobOf(other)).notes.join()).toContain('no service "billing"');
    expect(readJob(jobOf(scenario(web))).notes).toEqual([]);
  });

  it("runs a scenario of the package with the policy that it names", () => {
    const own = { isOwnPolicy: true };
    expect(readJob(jobOf(scenario(web), own)).notes.join()).toContain("no policy");
    const named = readJob(jobOf(scenario(web, "policy: policy.yaml"), own));
    expect(named.inputs[0]?.policy?.services[0]?.name).toBe("orders");
    const missing = readJob(jobOf(scenario(web, "policy: ../secret.yaml"), own));
    expect(missing.refusal).toContain('the policy "../secret.yaml"');
  });

  it.each([
    ["10^12 requests", jobOf(scenario("{name: web, rate: 100000}", "").replace("5s", "24h"))],
    ["endless time", jobOf(scenario(web).replace("5s", "1000d"))],
    ["a text of 5 MB", jobOf("#".repeat(5_000_000))],
    ["aliases without end", jobOf(`a: &a [x]\nb: &b [${"*a,".repeat(20_000)}]\n${scenario(web)}`)],
  ])("refuses %s where it stands", (_, job) => {
    const { problems, inputs } = readJob(job);
    expect(problems.length).toBeGreaterThan(0);
    expect(inputs).toEqual([]);
  });

  it.each([
    ["a file", jobOf(scenario("{name: web, rate: {trace: {file: /etc/passwd}}}")), "no such file"],
    ["hours", jobOf(scenario(web).replace("5s", "5h")), "More than 4 h"],
    ["many hours", jobOf(scenario(web).replace("5s", "1h"), { variation: "seed=1..5" }), "4 h"],
    ["13 runs", jobOf(scenario(web), { variation: `seed=${"1,".repeat(12)}1` }), "more than 12"],
    ["no values", jobOf(scenario(web), { variation: "seed=" }), "is not path=a,b,c"],
    ["no setting", jobOf(scenario(web), { variation: "__proto__=1" }), "__proto__"],
    ["a class", jobOf(scenario(web), { variation: "web.constructor=1" }), "web.constructor=1: "],
    ["a wrong value", jobOf(scenario(web), { variation: "rate=-1,x" }), "rate=-1: "],
  ])("refuses what takes %s", (_, job, words) => {
    const { refusal, inputs } = readJob(job);
    expect(refusal).toContain(words);
    expect(inputs).toEqual([]);
  });
});

describe("runJob()", () => {
  it("comes to what the command comes to", async () => {
    const header = `headers: {x-user: ${"long".repeat(100)}}`;
    const job = jobOf(scenario(`${web}, {name: other, rate: 20, ${header}}`));
    const ready = readJob(job);
    const report = await runJob(ready, { job, control: endless });
    const same = await runScenarios(ready.inputs, { digest: sha256, control: endless });
    expect(report.html).toBe(simulationHtml(same));
    expect(report.isMet).toBe(true);
    expect(report.csv).toMatch(/^run,second,offered/);
    expect(same.runs[0]?.summary.byCaller["other"]?.refusedByCause).toHaveProperty("rateLimit");
  });

  it("hands out the policy of each run that changed it", async () => {
    const job = jobOf(scenario(web), { variation: "maxInFlight=4,8" });
    const { drafts } = await runJob(readJob(job), { job, control: endless });
    // What was 4 before is no change.
    expect(drafts).toEqual([
      {
        label: "maxInFlight=8",
        files: [{ ...policy, text: policy.text.replace("maxInFlight: 4", "maxInFlight: 8") }],
      },
    ]);
    const varied = jobOf(scenario(web), { variation: "seed=1,2" });
    expect((await runJob(readJob(varied), { job: varied, control: endless })).drafts).toEqual([]);
  });

  it("leaves names what they are", async () => {
    const names = ["__proto__", "<img src=x onerror=alert(1)>", "constructor"];
    const callers = names.map((name) => `{name: ${JSON.stringify(name)}, rate: 20}`);
    const job = jobOf(scenario(callers.join()));
    const { html, markup } = await runJob(readJob(job), { job, control: endless });
    for (const name of names) expect(JSON.stringify(markup)).toContain(`"caller ${name}"`);
    expect(html).toContain("caller &lt;img src=x onerror=alert(1)&gt;");
    expect(html).not.toContain("<img");
  });
});

describe("firstScenario()", () => {
  it.each([
    ["with the services of the policy", [policy], "orders"],
    ["without a policy", [], "service"],
    ["with a policy that is wrong", [{ ...policy, text: "spec: 1" }], "service"],
  ] as const)("is one that can be run: %s", (_, policies, service) => {
    const text = firstScenario(policies);
    const isOwnPolicy = service === "service";
    const { inputs, problems } = readJob(jobOf(text, { policies, isOwnPolicy }));
    expect(problems).toEqual([]);
    expect(inputs[0]?.scenario.services.map(({ name }) => name)).toEqual([service]);
  });
});
