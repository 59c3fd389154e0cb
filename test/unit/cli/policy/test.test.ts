import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CliFolder, captureCli } from "../../../support/cli.js";

const policyText = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - {key: user, rate_limit: {unit: minute, requests_per_unit: 2}}
        - key: plan
          value: free
          rate_limit: {unit: day, requests_per_unit: 100, time_zone: Europe/Stockholm}
  services:
    - name: orders
      hosts: [orders.example]
      rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}]]}
    - name: idle
`;

let folder: CliFolder;

beforeEach(async () => {
  folder = await CliFolder.create();
  await folder.write("policy.yaml", policyText);
});

afterEach(async () => {
  await folder.remove();
});

function run(...args: readonly string[]) {
  return captureCli(["test", ...args]);
}

/** Runs one test with these steps. */
async function runSteps(...steps: readonly string[]) {
  const lines = steps.map((step) => `      - ${step}\n`).join("");
  const text = `policy: policy.yaml\ntests:\n  - name: it\n    steps:\n${lines}`;
  return run(await folder.write("shop.tests.yaml", text));
}

const ann = "{domain: shop, entries: {user: ann}}";

describe("headgate test", () => {
  it("charges costs that are told after the response as the service does", async () => {
    await folder.write(
      "policy.yaml",
      "domain: shop\n" +
        "descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 2}}]\n",
    );
    const asked = (hits: number) => `ask: {domain: shop, entries: {user: ann}, hits: ${hits}}`;
    const { code, out } = await runSteps(
      `{${asked(3)}, expect: denied}`,
      `{${asked(0)}, times: 2, expect: {allowed: 2}}`,
      `{${asked(3)}, expect: denied}`,
      `{${asked(0)}, expect: denied}`,
    );
    expect([out, code]).toEqual([expect.stringContaining("✓ it (5 calls)"), 0]);
  });

  it("passes what is as expected, in a time of its own", async () => {
    const { code, out } = await runSteps(
      `{ask: ${ann}, times: 3, expect: {allowed: 2, denied: 1, rule: user}}`,
      `{ask: ${ann}, expect: {verdict: denied, retryAfter: 30s}}`,
      "{wait: 30s}",
      `{ask: ${ann}, expect: {verdict: allowed, remaining: 0}}`,
      "{ask: {domain: shop, entries: {user: bob}, hits: 3}, expect: denied}",
      "{http: {host: orders.example, headers: {X-User: bob}}, times: 2, expect: allowed}",
      "{http: {service: orders, headers: {x-user: bob}}, expect: denied}",
      "{http: {service: orders}, expect: allowed}",
    );
    expect(out).toContain("✓ it (10 calls)");
    expect(out).toContain("No test matched 1 of 2 rules: shop/plan_free.");
    expect(code).toBe(0);
  });

  it("starts when a test says, and each test with nothing used", async () => {
    const ask = "{ask: {domain: shop, entries: {plan: free}}, times: 100, expect: allowed}";
    const path = await folder.write(
      "shop.tests.yaml",
      `policy: [policy.yaml]
tests:
  - name: a day in Stockholm begins an hour before one in UTC
    start: 2026-01-05T22:59:59Z
    steps:
      - ${ask}
      - {ask: {domain: shop, entries: {plan: free}}, expect: {verdict: denied, retryAfter: 1s}}
      - {wait: 1s}
      - ${ask}
  - name: nothing is used
    steps: [${ask}]
`,
    );
    expect(await run(path)).toMatchObject({ code: 0, err: "" });
  });

  it.each([
    [`{ask: ${ann}, expect: denied}`, "expected denied, got allowed (matched: user)"],
    [
      `{ask: ${ann}, times: 3, expect: allowed}`,
      "expected 3 of 3 allowed, and 2 were (over: user)",
    ],
    [`{ask: ${ann}, expect: {rule: usr}}`, 'expected the rule usr, got user; did you mean "user"?'],
    [`{ask: ${ann}, expect: {remaining: 5}}`, "expected 5 hits left, got 1"],
    [
      `{ask: ${ann}, expect: {retryAfter: 1s}}`,
      "expected that it fits after 1000 ms, but nothing was over",
    ],
    ["{ask: {domain: shp, entries: {user: ann}}, expect: allowed}", 'did you mean "shop"?'],
    ["{http: {host: order.example}, expect: allowed}", 'no service has the host "order.example"'],
    ["{http: {service: order}, expect: allowed}", 'no service is named "order"'],
    ["{http: {service: idle}, expect: allowed}", 'the service "idle" has no rate limits'],
  ])("fails %s", async (step, words) => {
    const { code, out } = await runSteps(step);
    expect(out).toContain(`shop.tests.yaml:5: `);
    expect(out).toContain(words);
    expect(out).toContain("0 of 1 test passed.");
    expect(code).toBe(1);
  });

  it("tells JSON and JUnit the same", async () => {
    const text = `policy: policy.yaml
tests:
  - {name: 'a < "b"', steps: [{ask: ${ann}, expect: denied}]}
`;
    const path = await folder.write("shop.tests.yaml", text);
    const json = await run("-o", "json", path);
    expect(JSON.parse(json.out)).toMatchObject({
      files: [{ outcomes: [{ name: 'a < "b"', failures: [{ line: 3 }] }], ruleCount: 2 }],
    });
    const { out } = await run("-o", "junit", path);
    expect(out).toContain('tests="1" failures="1"');
    expect(out).toContain('<testcase name="a &lt; &quot;b&quot;"');
    expect(out).toContain('<failure message="line 3: expected denied');
  });

  it("tests another policy where it is told to", async () => {
    const path = await folder.write(
      "shop.tests.yaml",
      `policy: none.yaml\ntests: [{name: a, steps: [{ask: ${ann}, expect: allowed}]}]\n`,
    );
    expect(await run(path)).toMatchObject({ code: 1, err: expect.stringContaining("none.yaml") });
    expect((await run("--policy", join(folder.path, "policy.yaml"), path)).code).toBe(0);
  });

  it("says all that is wrong with a file of tests at once, with places", async () => {
    const { code, err } = await runSteps(
      "{wait: soon}",
      "{ask: {domain: shop}, expect: allowed}",
      `{ask: ${ann}, wait: 1s}`,
      `{ask: ${ann}}`,
      `{ask: ${ann}, expect: perhaps}`,
      `{ask: ${ann}, times: 0, expect: allowed}`,
      `{ask: ${ann}, expect: {verdict: allowed, denied: 1}}`,
      "{http: {path: /a}, expect: allowed}",
      "{ask: {domain: shop, descriptors: [], hits: 1}, expect: allowed}",
      "{}",
    );
    expect(code).toBe(3);
    const places = [...err.matchAll(/shop\.tests\.yaml:(\d+):\d+:? \[?(HG\d+)/g)];
    expect(places.map(([, line, id]) => `${line} ${id}`)).toEqual([
      "5 HG201",
      "6 HG125",
      "7 HG126",
      "8 HG125",
      "9 HG133",
      "10 HG141",
      "11 HG126",
      "12 HG125",
      "13 HG126",
      "14 HG125",
    ]);
  });

  it("refuses a start that is no time, and a file without tests", async () => {
    const path = await folder.write(
      "a.yaml",
      "policy: policy.yaml\ntests: [{name: a, start: noon, steps: []}]\n",
    );
    expect(await run(path)).toMatchObject({
      code: 3,
      err: expect.stringContaining("is not a time"),
    });
    const empty = await folder.write("b.yaml", "# nothing\n");
    expect(await run(empty)).toMatchObject({ code: 3, err: expect.stringContaining("HG110") });
  });
});
