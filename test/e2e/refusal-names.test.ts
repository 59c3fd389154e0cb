import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startHostedGateway } from "../support/gateway.js";
import type { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const policy = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: names}
spec:
  rateLimits:
    - domain: edge
      descriptors:
        - key: quiet
          rate_limits: [{name: daily, unit: day, requests_per_unit: 1}]
        - key: loud
          tellRule: {header: true}
          rate_limit: {unit: day, requests_per_unit: 1}
        - key: silent
          tellRule: {metadata: false, log: false}
          rate_limit: {unit: day, requests_per_unit: 1}
        - key: plan
          value: free
          tellRule: {header: true}
          rate_limits: [{name: plan-pace, unit: day, requests_per_unit: 1}]
  services:
    - name: orders
      hosts: [orders.example]
      admission: {reject: {tellRule: {header: true}}}
      rateLimit:
        domain: edge
        inExtProc: true
        descriptors: [[{header: x-plan, as: plan}]]
`;

/** What Envoy's own log says of a request. */
type LogLine = Readonly<Record<string, unknown>>;

const limitNamespace = "envoy.filters.http.ratelimit";

const fields = {
  name: "%REQ(X-NAME)%",
  status: "%RESPONSE_CODE%",
  rule: `%DYNAMIC_METADATA(${limitNamespace}:rule)%`,
  limit: `%DYNAMIC_METADATA(${limitNamespace}:limit)%`,
  domain: `%DYNAMIC_METADATA(${limitNamespace}:domain)%`,
  admission: "%DYNAMIC_METADATA(headgate)%",
};

const stage = useStage("file");
let gateway: Gateway<HostedHeadgate>;
let logPath: string;
const http = new HttpClient();

afterAll(() => http.close());

beforeAll(async () => {
  logPath = join(stage.folder, "access.log");
  gateway = await startHostedGateway(stage, {
    policy,
    descriptorKeys: [["quiet"], ["loud"], ["silent"]],
    envoy: { accessLog: { path: logPath, fields }, extProc: {} },
  });
});

/** A request that Envoy's log knows by its name, and the line that it becomes. */
async function send(name: string, headers: Readonly<Record<string, string>>) {
  const answer = await http.send({
    port: gateway.envoy.port,
    headers: { ...headers, "x-name": name },
  });
  const line = await waitFor(`a line of ${name}`, async () => {
    const text = await readFile(logPath, "utf8");
    const lines = text
      .trim()
      .split("\n")
      .map((one): LogLine => JSON.parse(one));
    return lines.find((one) => one["name"] === name);
  });
  return { status: answer.status, header: answer.headers["x-headgate-rule"], line };
}

const nothing = { rule: null, limit: null, domain: null };

describe("the name of a rule that refuses", () => {
  it.each([
    {
      key: "quiet",
      header: undefined,
      reported: { domain: "edge", rule: "quiet", limit: "daily" },
    },
    { key: "loud", header: "loud", reported: { domain: "edge", rule: "loud", limit: null } },
    { key: "silent", header: undefined, reported: nothing },
  ])("stands where the policy says: $key", async ({ key, header, reported }) => {
    const passed = await send(`${key}-passed`, { [`x-${key}`]: "someone" });
    expect(passed).toMatchObject({ status: 200, header: undefined, line: nothing });
    const refused = await send(`${key}-refused`, { [`x-${key}`]: "someone" });
    expect({ status: refused.status, header: refused.header }).toEqual({ status: 429, header });
    expect(refused.line).toMatchObject({ status: 429, ...reported });
  });

  it("is told by admission of the rate limit that it asks", async () => {
    const host = { host: "orders.example" };
    const passed = await send("plan-passed", { "x-plan": "free", ...host });
    expect(passed).toMatchObject({ status: 200, header: undefined });
    const refused = await send("plan-refused", { "x-plan": "free", ...host });
    expect(refused).toMatchObject({ status: 429, header: "plan_free/plan-pace" });
    expect(refused.line["admission"]).toEqual({
      service: "orders",
      cause: "rateLimit",
      domain: "edge",
      rule: "plan_free",
      limit: "plan-pace",
    });
  });

  it("is the service and the cause where admission itself refuses", async () => {
    const refused = await send("late", { host: "orders.example", "grpc-timeout": "1u" });
    expect(refused).toMatchObject({ status: 504, header: "orders/deadline" });
    expect(refused.line["admission"]).toEqual({ service: "orders", cause: "deadline" });
  });

  it("stands in a sample of Headgate's own log, without what a caller has said", async () => {
    const [headgate] = gateway.headgates;
    const refusals = await waitFor("a line of each rule", () => {
      const lines = headgate.output.split("\n").filter((one) => one.includes('"refused"'));
      const found = lines.map((one): LogLine => JSON.parse(one));
      return found.some(({ service }) => service === "orders") ? found : undefined;
    });
    const rules = refusals.flatMap(({ rule }) => (rule === undefined ? [] : [rule]));
    expect(rules.toSorted()).toEqual(["loud", "plan_free", "quiet"]);
    expect(refusals).toContainEqual(
      expect.objectContaining({ domain: "edge", rule: "quiet", limit: "daily", refusedCount: 1 }),
    );
    expect(JSON.stringify(refusals)).not.toContain("someone");
    expect(await headgate.metric("headgate_refusals_unlogged_total")).toBe(0);
  });
});
