import { describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { startHoldingUpstream } from "../support/holding-upstream.js";
import { type HttpAnswer, HttpClient } from "../support/http-client.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

function client(port: number): (path?: string) => Promise<HttpAnswer> {
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return (path = "/") => http.send({ port, path });
}

/** A service with these retries. */
function retrying(port: number, retries: string): string {
  return `
    - name: orders
      upstream: {address: 127.0.0.1, port: ${port}}
      outlierDetection: off
      retries: ${retries}
  `;
}

/** Attempts for each request of many callers at once, none of which is served. */
async function attemptsPerRequest(breakers: string): Promise<number> {
  const [callerCount, requestsEach] = [100, 10];
  const upstream = await startScriptedUpstream(stage);
  upstream.answer = () => ({ status: 502, afterMs: 50 });
  const services = `
    ${retrying(upstream.port, "{numRetries: 2, retryOn: [gatewayError]}").trim()}
      ${breakers}
  `;
  const { envoy } = await startGeneratedEnvoy(stage, { services });
  const send = client(envoy.port);
  const callers = Array.from({ length: callerCount }, async () => {
    for (let i = 0; i < requestsEach; i += 1) expect((await send()).status).toBe(502);
  });
  await Promise.all(callers);
  return upstream.arrivalsMs.length / (callerCount * requestsEach);
}

const refusal = { "x-envoy-ratelimited": "true" };

describe("generated retries", () => {
  it("try again what failed, as often as the policy says", async () => {
    const upstream = await startScriptedUpstream(stage);
    upstream.answer = (index) => ({ status: index < 2 ? 502 : 200 });
    const services = retrying(upstream.port, "{numRetries: 2, retryOn: [gatewayError]}");
    const { envoy } = await startGeneratedEnvoy(stage, { services });
    const send = client(envoy.port);
    expect((await send()).status).toBe(200);
    upstream.answer = () => ({ status: 502 });
    expect((await send()).status).toBe(502);
    expect(upstream.arrivalsMs).toHaveLength(6);
  });

  it("are at most a fifth of the requests of an upstream that fails under load", async () => {
    const withBudget = await attemptsPerRequest("");
    expect(withBudget).toBeLessThanOrEqual(1.2);
    expect(withBudget).toBeGreaterThan(1.05);
    // What the same callers would do to it otherwise.
    const unbounded = "circuitBreakers: {retryBudget: off, maxRetries: 1000}";
    expect(await attemptsPerRequest(unbounded)).toBe(3);
  });

  it("try a connection again that was not made", async () => {
    const services = retrying(await freePort(), "{numRetries: 2}");
    const { envoy } = await startGeneratedEnvoy(stage, { services });
    expect((await client(envoy.port)()).status).toBe(503);
    expect(await envoy.stat("cluster.orders.upstream_rq_retry")).toBe(2);
  });

  it("do not repeat what another generated proxy has refused", async () => {
    const upstream = await startHoldingUpstream(stage);
    const back = await startGeneratedEnvoy(stage, {
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          circuitBreakers: {maxRequests: 1}
      `,
    });
    const services = retrying(back.ports.port, '{retryOn: [gatewayError, "5xx", reset]}');
    const { envoy } = await startGeneratedEnvoy(stage, { services });
    const send = client(envoy.port);
    const held = send();
    await waitFor("the service is full", () => upstream.heldCount === 1);
    const refused = await send();
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"]);
    expect(await envoy.stat("cluster.orders.upstream_rq_retry")).toBe(0);
    expect(await back.envoy.stat("cluster.orders.upstream_rq_active_overflow")).toBe(1);
    upstream.release();
    expect((await held).status).toBe(200);
  });

  it("wait as long as a refusal says, where refusals are tried again", async () => {
    const upstream = await startScriptedUpstream(stage);
    upstream.answer = (index) =>
      index === 0 ? { status: 429, headers: { ...refusal, "retry-after": "1" } } : { status: 200 };
    const services = retrying(upstream.port, "{retryOn: [rateLimited], maxRetryAfter: 2s}");
    const { envoy } = await startGeneratedEnvoy(stage, { services });
    expect((await client(envoy.port)()).status).toBe(200);
    const [firstMs = 0, secondMs = 0, ...others] = upstream.arrivalsMs;
    expect(others).toEqual([]);
    expect(secondMs - firstMs).toBeGreaterThan(900);
  });

  it("wait as long as a failure says, too", async () => {
    const upstream = await startScriptedUpstream(stage);
    upstream.answer = (index) =>
      index === 0 ? { status: 503, headers: { "retry-after": "1" } } : { status: 200 };
    const services = retrying(upstream.port, "{retryOn: [gatewayError]}");
    const { envoy } = await startGeneratedEnvoy(stage, { services });
    expect((await client(envoy.port)()).status).toBe(200);
    const [firstMs = 0, secondMs = 0] = upstream.arrivalsMs;
    expect(secondMs - firstMs).toBeGreaterThan(900);
  });
});
