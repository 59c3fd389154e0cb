import { describe, expect, it } from "vitest";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { startHoldingUpstream } from "../support/holding-upstream.js";
import { HttpClient } from "../support/http-client.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";
import { askUpgrade, startUpgradingUpstream } from "../support/upgrading-upstream.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

function client() {
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return http;
}

function service(port: number, more = ""): string {
  return `- {name: orders, upstream: {address: 127.0.0.1, port: ${port}}${more}}`;
}

describe("a generated listener", () => {
  it("refuses headers that are too many, or too large", async () => {
    const upstream = await startScriptedUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: service(upstream.port),
      listener: { maxRequestHeadersKb: 8, maxHeadersCount: 20 },
    });
    const { port } = envoy;
    const http = client();
    const send = async (headers: Readonly<Record<string, string>>) =>
      (await http.send({ port, headers })).status;
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, "a"]));
    expect(await send(many(10))).toBe(200);
    expect(await send(many(25))).toBe(431);
    expect(await send({ "x-large": "a".repeat(6_000) })).toBe(200);
    expect(await send({ "x-large": "a".repeat(9_000) })).toBe(431);
    expect(upstream.arrivalsMs.length).toBe(2);
  });

  it("drains a connection that has lasted long enough", async () => {
    const upstream = await startScriptedUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: service(upstream.port),
      listener: { maxConnectionDuration: "200ms" },
    });
    await client().send({ port: envoy.port });
    await waitFor(
      "it is drained",
      async () => (await envoy.stat("http.ingress.downstream_cx_max_duration_reached")) === 1,
    );
  });
});

describe("a generated route", () => {
  it("tries statuses again that the policy names, and no others", async () => {
    const upstream = await startScriptedUpstream(stage);
    const retries =
      "retries: {numRetries: 1, retryOn: [retriableStatus], retriableStatusCodes: [429, 502]}";
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: service(upstream.port, `, ${retries}`),
    });
    const http = client();
    const tried: Record<number, readonly number[]> = {};
    for (const status of [429, 502, 500]) {
      const before = upstream.arrivalsMs.length;
      upstream.answer = (index) => ({ status: index === before ? status : 200 });
      const answer = await http.send({ port: envoy.port });
      tried[status] = [answer.status, upstream.arrivalsMs.length - before];
    }
    expect(tried).toEqual({ 429: [200, 2], 502: [200, 2], 500: [500, 1] });
  });

  it("gives a try up on which nothing moves", async () => {
    const upstream = await startHoldingUpstream(stage);
    const retries = "retries: {numRetries: 1, retryOn: [gatewayError], perTryIdleTimeout: 200ms}";
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: service(upstream.port, `, ${retries}, timeouts: {request: 0s}`),
    });
    expect((await client().send({ port: envoy.port })).status).toBe(504);
    expect(await envoy.stat("cluster.orders.upstream_rq_per_try_idle_timeout")).toBe(2);
  });

  it("tries again beside a try that takes too long, and takes the first answer", async () => {
    const upstream = await startHoldingUpstream(stage);
    const retries = "retries: {numRetries: 1, perTryTimeout: 200ms, hedging: onPerTryTimeout}";
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: service(upstream.port, `, ${retries}`),
    });
    const answer = client().send({ port: envoy.port });
    await waitFor("both tries are in work", () => upstream.heldCount === 2);
    upstream.releaseOne(200);
    expect((await answer).status).toBe(200);
    await waitFor("the other is given up", () => upstream.heldCount === 0);
    expect(await envoy.stat("cluster.orders.upstream_rq_retry")).toBe(1);
  });

  it("ends a stream that has lasted long enough, though it moves", async () => {
    const port = await startUpgradingUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: service(port, ", timeouts: {request: 100ms, maxStreamDuration: 400ms}"),
    });
    const wish = { port: envoy.port, protocol: "websocket", host: "orders" };
    const outcome = await askUpgrade(stage, wish);
    if (outcome.kind !== "upgraded") throw new Error(`answered ${outcome.status}`);
    expect(await outcome.echo("ping")).toBe("ping");
    await expect(
      (async () => {
        for (;;) await outcome.echo("ping");
      })(),
    ).rejects.toThrow("the connection has ended");
  });

  it("takes a connection to the service out of use that has lasted long enough", async () => {
    const upstream = await startScriptedUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      services: service(upstream.port, ", timeouts: {maxConnectionDuration: 200ms}"),
    });
    await client().send({ port: envoy.port });
    await waitFor(
      "it is drained",
      async () => (await envoy.stat("cluster.orders.upstream_cx_max_duration_reached")) === 1,
    );
  });
});
