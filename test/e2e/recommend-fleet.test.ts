import { describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.js";
import { freePort } from "../support/free-port.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

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
});
