import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { TestAuthority } from "../support/certificates.js";
import { freePort } from "../support/free-port.js";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { TlsFolder } from "../support/tls-folder.js";
import { startUpstream } from "../support/upstream.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const authority = new TestAuthority();
const serverName = "headgate.shop";

/** A generated proxy, and a Headgate of the same policy that lets in whom its authority knows. */
async function start({ shows }: { readonly shows: "its certificate" | "nothing" }) {
  const server = new TlsFolder(join(stage.folder, "server"));
  const clientAuthority = authority.certificate;
  await server.write({ server: authority.issue({ names: [serverName] }), clientAuthority });
  const proxy = new TlsFolder(join(stage.folder, "proxy"));
  await proxy.write({ server: authority.issue({ names: ["edge.shop"] }), clientAuthority });
  const controlPort = await freePort();
  const env = { ...server.mutualEnv, HEADGATE_CONTROL_ADDR: `127.0.0.1:${controlPort}` };
  const headgate = await HostedHeadgate.prepare(stage, { policy: "", env });
  const own = { certFile: proxy.certificatePath, keyFile: proxy.keyPath };
  const place = {
    address: "127.0.0.1",
    port: headgate.grpcPort,
    controlPort,
    tls: {
      caFile: proxy.authorityPath,
      serverName,
      ...(shows === "nothing" ? {} : own),
    },
    rateLimitTimeout: "1s",
  };
  const upstream = await startUpstream(stage);
  const { envoy, policy } = await startGeneratedEnvoy(stage, {
    more: `
      rateLimits:
        - domain: shop
          descriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 1}}]`,
    services: `
      - name: orders
        upstream: {address: 127.0.0.1, port: ${upstream.port}}
        rateLimit: {domain: shop, descriptors: [[{header: x-user, as: user}]]}
        admission: {maxInFlight: 100}
        concurrency: {law: gradient, sources: [envoyMetrics], feedback: [circuitBreakers]}`,
    proxies: `headgate: ${JSON.stringify(place)}`,
  });
  await writeFile(headgate.policyPath, policy);
  await headgate.restart();
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return {
    headgate,
    envoy,
    send: (user = "a") => http.send({ port: envoy.port, headers: { "x-user": user } }),
  };
}

describe("a generated proxy with certificates", () => {
  it("is limited, followed and driven by a Headgate that asks for them", async () => {
    const { headgate, envoy, send } = await start({ shows: "its certificate" });
    await waitFor("it is limited", async () => (await send()).status === 429);
    expect(await headgate.metric("headgate_ext_proc_streams_total")).toBeGreaterThan(0);
    await waitFor("it is driven", async () => {
      // Who never had a request that went on has no share.
      await send(randomUUID());
      return envoy.runtimeValue("circuit_breakers.orders.default.max_requests");
    });
  });

  it("is on its own where it has none to show, and lets requests pass", async () => {
    const { headgate, send } = await start({ shows: "nothing" });
    await waitFor("it is refused", async () => {
      expect((await send()).status).toBe(200);
      const name = "headgate_tls_refused_connections_total";
      return (await headgate.metric(name, { cause: "noClientCertificate" })) > 0;
    });
    const answer = await send();
    expect(answer.status).toBe(200);
    expect(answer.headers["x-ratelimit-limit"]).toBeUndefined();
    expect(await headgate.metric("headgate_requests_total")).toBe(0);
  });
});
