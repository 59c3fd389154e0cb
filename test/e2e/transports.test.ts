import { describe, expect, it } from "vitest";
import { edgePolicy, rateLimitHeaders, startGateway, statusOf } from "../support/gateway.js";
import type { HeadgateProcess } from "../support/headgate-process.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { transportNames } from "../support/transports.js";
import { waitFor } from "../support/wait.js";

const policy = edgePolicy(`
  - key: account
    rate_limit: {unit: hour, requests_per_unit: 1000000}
  - key: narrow
    rate_limit: {unit: hour, requests_per_unit: 2}
`);
const descriptorKeys = [["account"], ["narrow"]];

const stage = useStage("test");

describe.each(transportNames)("Envoy in front of %s", (name) => {
  const transport = { HEADGATE_TRANSPORT: name };

  it("is told what is allowed, what is not, and what remains", async () => {
    const gateway = await startGateway(stage, {
      policy,
      descriptorKeys,
      headgateEnvs: [transport],
      envoy: { isHealthChecked: true, withoutDecision: "deny" },
    });
    const answers = [];
    for (let i = 0; i < 3; i += 1) answers.push(await gateway.send({ narrow: "a" }));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(answers.map((answer) => rateLimitHeaders(answer).remaining)).toEqual([1, 0, 0]);
    // Its health check is a unary call of the same transport.
    expect(await gateway.envoy.stat("cluster.headgate.health_check.failure")).toBe(0);
    expect(await gateway.envoy.stat("cluster.headgate.upstream_cx_protocol_error")).toBe(0);
  });

  it("loses no request when a Headgate stops, and when connections reach their age", async () => {
    const ages = { GRPC_MAX_CONNECTION_AGE: "500ms", GRPC_MAX_CONNECTION_AGE_GRACE: "10s" };
    const env = { ...transport, ...ages, HEADGATE_DRAIN_DELAY_MS: "1000" };
    const gateway = await startGateway(stage, {
      policy,
      descriptorKeys,
      headgateEnvs: [env, env],
      envoy: { isHealthChecked: true, withoutDecision: "deny" },
    });
    const [first, second] = gateway.headgates as readonly [HeadgateProcess, HeadgateProcess];
    const traffic = Traffic.start(stage, {
      callersCount: 8,
      call: () => statusOf(gateway.send({ account: "busy" })),
    });
    const opened = (): Promise<number> => gateway.envoy.stat("cluster.headgate.upstream_cx_total");
    await waitFor("Envoy has opened eight connections", async () => (await opened()) >= 8, {
      withinMs: 30_000,
    });
    expect(await first.terminate()).toEqual({ code: 0 });
    const before = await decisions(second);
    await waitFor("the other one decides", async () => (await decisions(second)) > before + 200);
    const { total, byOutcome } = await traffic.stop();
    expect(byOutcome).toEqual({ 200: total });
    expect(await gateway.envoy.stat("cluster.upstream.ratelimit.error")).toBe(0);
  });
});

function decisions(headgate: HeadgateProcess): Promise<number> {
  return headgate.metric("headgate_requests_total", { code: "ok" });
}
