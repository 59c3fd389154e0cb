import { describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.js";
import { freePort } from "../support/free-port.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const rules = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - {key: everyone, value: all, rate_limit: {unit: minute, requests_per_unit: 5}}
        - {key: user, rate_limit: {unit: minute, requests_per_unit: 5}}
`;

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  services:
    - name: orders
      hosts: [orders.example]
      admission: {}
`;

describe("headgate recommend --from-fleet", () => {
  it("reads the seconds of a real Headgate, and proposes nothing from idle ones", async () => {
    const port = await freePort();
    const env = { HEADGATE_ADMIN_ADDR: `127.0.0.1:${port}`, HEADGATE_ADMIN_OPEN: "true" };
    const headgate = await HostedHeadgate.start(stage, { policy, env });
    const url = `http://127.0.0.1:${port}`;
    const args = ["recommend", "--policy", headgate.policyPath, "--from-fleet"];
    const look = () => captureCli([...args, "--admin-url", url, "-o", "json"]);
    // Ten whole seconds make one step.
    const { code, out } = await waitFor(
      "the fleet has a step",
      async () => {
        const run = await look();
        return run.out.includes("1 of 1 steps had no requests") ? run : undefined;
      },
      { withinMs: 60_000, everyMs: 1_000 },
    );
    expect(code).toBe(4);
    const [{ verdict, observations }] = JSON.parse(out).recommendation.services;
    expect(verdict).toEqual({ kind: "few", levelCount: 0 });
    expect(observations).toMatchObject({ requestCount: 0, inFlightMax: 0 });
  });

  it("counts the hits of rules, admitted or not, and says what a limit needs", async () => {
    const port = await freePort();
    const env = { HEADGATE_ADMIN_ADDR: `127.0.0.1:${port}`, HEADGATE_ADMIN_OPEN: "true" };
    const headgate = await HostedHeadgate.start(stage, { policy: rules, env });
    const client = new RlsClient(headgate.grpcPort);
    stage.atEnd(() => client.close());
    const descriptors = [["everyone=all"], ["user=ann"]];
    for (let i = 0; i < 20; i += 1) await client.ask({ domain: "shop", descriptors });
    const args = ["recommend", "--policy", headgate.policyPath, "--from-fleet", "--only", "limits"];
    const { code, out } = await waitFor(
      "a step of ten seconds has ended",
      async () => {
        const run = await captureCli([...args, "--admin-url", `http://127.0.0.1:${port}`]);
        return run.out.includes("20 hits, one bucket for all") ? run : undefined;
      },
      { withinMs: 60_000, everyMs: 1_000 },
    );
    expect(code).toBe(4);
    expect(out).toContain("shop/everyone_all:\n  20 hits; 1,000 are needed, about 50 times");
    expect(out).toMatch(/ {2}the data covers [12]0s; 1 h is needed/);
    expect(out).toContain("shop/user:\n  The fleet knows the hits of all callers together: ");
  });
});
