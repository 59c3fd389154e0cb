import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.js";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { startHoldingUpstream } from "../support/holding-upstream.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { type HttpAnswer, HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

function client(port: number, host: string): () => Promise<HttpAnswer> {
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return () => http.send({ port, headers: { host } });
}

describe("a generated proxy", () => {
  it("has its breakers driven by a Headgate, and none driven without it", async () => {
    const upstream = await startHoldingUpstream(stage);
    const controlPort = await freePort();
    const env = { HEADGATE_CONTROL_ADDR: `127.0.0.1:${controlPort}` };
    const headgate = await HostedHeadgate.prepare(stage, { policy: "", env });
    const { envoy, policy } = await startGeneratedEnvoy(stage, {
      proxies: `
        headgate: {address: 127.0.0.1, port: ${headgate.grpcPort}, controlPort: ${controlPort}}
      `,
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          circuitBreakers: {maxRequests: 9}
          concurrency:
            law: fixed
            limits: {max: 2}
            sources: [envoyMetrics]
            feedback: [circuitBreakers]
      `,
    });
    const remaining = (): Promise<number> =>
      envoy.stat("cluster.orders.circuit_breakers.default.remaining_rq");
    const send = client(envoy.port, "orders");
    const first = send();
    await waitFor("one is in work", () => upstream.heldCount === 1);
    expect(await remaining()).toBe(8);
    upstream.release();
    await first;
    await writeFile(headgate.policyPath, policy);
    await headgate.restart();
    const key = "circuit_breakers.orders.default.max_requests";
    await waitFor(
      "the layer is active",
      async () => {
        // Who never had a request has no share.
        const one = send();
        await waitFor("it is in work", () => upstream.heldCount === 1);
        upstream.release();
        await one;
        return (await envoy.runtimeValue(key)) === "2";
      },
      { withinMs: 20_000 },
    );
    const held = [send(), send()];
    await waitFor("two are in work", () => upstream.heldCount === 2);
    expect((await send()).status).toBe(503);
    upstream.release();
    await Promise.all(held);
  });

  it("holds a callee's breaker in its caller's sidecar", async () => {
    const upstream = await startHoldingUpstream(stage);
    const { envoy, ports } = await startGeneratedEnvoy(stage, {
      services: `
        - name: web
          upstream: {address: 127.0.0.1, port: ${await freePort()}}
        - name: orders
          namespace: shop
          direction: outbound
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
          circuitBreakers: {maxRequests: 1}
      `,
      document: "sidecar/web/envoy.yaml",
    });
    const held = client(ports.outboundPort, "orders.shop:8080")();
    await waitFor("the call is in work", () => upstream.heldCount === 1);
    const refused = await client(ports.outboundPort, "orders")();
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"]);
    // Nobody else is called this way, and nobody calls orders through the other listener.
    expect((await client(ports.outboundPort, "web")()).status).toBe(404);
    expect(await envoy.stat("cluster.orders.upstream_rq_active_overflow")).toBe(1);
    upstream.release();
    expect((await held).status).toBe(200);
  });

  it("closes connections above its bound at once", async () => {
    const upstream = await startHoldingUpstream(stage);
    const { envoy } = await startGeneratedEnvoy(stage, {
      listener: { maxConnections: 1 },
      services: `
        - name: orders
          upstream: {address: 127.0.0.1, port: ${upstream.port}}
      `,
    });
    const open = connect(envoy.port, "127.0.0.1");
    stage.atEnd(() => open.destroy());
    await waitFor("it is accepted", async () => {
      return (await envoy.stat("connection_limit.ingress.active_connections")) === 1;
    });
    const other = connect(envoy.port, "127.0.0.1");
    await new Promise((resolve) => other.once("close", resolve));
    expect(await envoy.stat("connection_limit.ingress.limited_connections")).toBe(1);
  });
});
