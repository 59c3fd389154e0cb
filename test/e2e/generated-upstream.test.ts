import { describe, expect, it } from "vitest";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { startHoldingUpstream } from "../support/holding-upstream.js";
import { type HttpAnswer, HttpClient } from "../support/http-client.js";
import { RedisServer } from "../support/redis-server.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

function client(port: number): (path?: string) => Promise<HttpAnswer> {
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return (path = "/") => http.send({ port, path });
}

describe("a generated cluster", () => {
  it("opens its breaker at its number, says when to come back, and closes it", async () => {
    const upstream = await startHoldingUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          circuitBreakers: {maxRequests: 2}
      `,
    });
    const send = client(envoy.port);
    const held = [send(), send()];
    await waitFor("both are in work", () => upstream.heldCount === 2);
    const refused = await send();
    expect(refused.status).toBe(503);
    expect(refused.headers).toMatchObject({
      "retry-after": "1",
      "x-envoy-overloaded": "true",
      "x-envoy-ratelimited": "true",
    });
    expect(await envoy.stat("cluster.orders.circuit_breakers.default.remaining_rq")).toBe(0);
    upstream.release();
    const statuses = (await Promise.all(held)).map(({ status }) => status);
    expect(statuses).toEqual([200, 200]);
    const next = send();
    await waitFor("the next is in work", () => upstream.heldCount === 1);
    upstream.release();
    expect((await next).status).toBe(200);
  });

  it("lets critical requests through while others fill its breaker", async () => {
    const upstream = await startHoldingUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          circuitBreakers: {maxRequests: 2}
          priority:
            rules:
              - {when: 'request.path.startsWith("/checkout")', is: critical}
      `,
    });
    const send = client(envoy.port);
    const held = [send(), send()];
    await waitFor("the breaker is full", () => upstream.heldCount === 2);
    expect((await send()).status).toBe(503);
    const urgent = [send("/checkout"), send("/checkout/pay")];
    await waitFor("critical ones are in work beside them", () => upstream.heldCount === 4);
    // Their own threshold is as large, and no larger.
    expect((await send("/checkout")).status).toBe(503);
    upstream.release();
    const statuses = (await Promise.all([...held, ...urgent])).map(({ status }) => status);
    expect(statuses).toEqual([200, 200, 200, 200]);
  });

  it("asks hosts whether they are well, by what they say on a connection", async () => {
    const redis = async (args: readonly string[], password = ""): Promise<number> => {
      const server = await RedisServer.start({
        engine: "redis",
        args,
        ...(password === "" ? {} : { password }),
      });
      stage.atEnd(() => server.stop());
      return server.port;
    };
    const [open, closed] = [await redis([]), await redis(["--requirepass", "secret"], "secret")];
    const check = 'healthChecks: {tcp: {send: "PING\\r\\n", receive: "+PONG"}, initialJitter: 1ms}';
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `
        - {name: open, upstream: {address: 127.0.0.1, port: ${open}}, ${check}}
        - {name: closed, upstream: {address: 127.0.0.1, port: ${closed}}, ${check}}
      `,
    });
    await waitFor("both are asked", async () => {
      const failed = await envoy.stat("cluster.closed.health_check.failure");
      return failed > 0 && (await envoy.stat("cluster.open.health_check.success")) > 0;
    });
    expect(await envoy.stat("cluster.open.membership_healthy")).toBe(1);
    expect(await envoy.stat("cluster.open.health_check.failure")).toBe(0);
    expect(await envoy.stat("cluster.closed.health_check.success")).toBe(0);
  });

  it("leaves out a host that fails, and takes it back", async () => {
    const upstream = await startScriptedUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          outlierDetection:
            consecutive5xx: 3
            interval: 100ms
            baseEjectionTime: 2s
            maxEjectionPercent: 100
      `,
    });
    // With a single host Envoy panics, and sends requests to it all the same.
    await envoy.setRuntime({ "upstream.healthy_panic_threshold": "0" });
    const send = client(envoy.port);
    upstream.answer = () => ({ status: 500 });
    for (let count = 0; count < 3; count += 1) expect((await send()).status).toBe(500);
    expect(await envoy.stat("cluster.orders.outlier_detection.ejections_active")).toBe(1);
    upstream.answer = () => ({ status: 200 });
    const refused = await send();
    expect([refused.status, upstream.arrivalsMs.length]).toEqual([503, 3]);
    // That nobody is there is no refusal: another proxy may try it again.
    expect(refused.headers).not.toHaveProperty("x-envoy-ratelimited");
    await waitFor("the host is back", async () => (await send()).status === 200);
    expect(await envoy.stat("cluster.orders.outlier_detection.ejections_active")).toBe(0);
  });
});
