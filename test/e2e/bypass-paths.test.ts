import { writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { useStage } from "../support/stage.js";

const stage = useStage("file");

/** One request an hour of each path, as far as paths are limited. */
const limits = `
  rateLimits:
    - domain: shop
      descriptors: [{key: path, rate_limit: {unit: hour, requests_per_unit: 1}}]
`;

const services = (port: number): string => `
  - name: orders
    upstream: {address: 127.0.0.1, port: ${port}}
    rateLimit: {domain: shop, descriptors: [[{header: ":path", as: path}]]}
    admission: {maxInFlight: 100}
    priority: {bypassPaths: [/healthz, /static/*]}
`;

async function startEdge() {
  const upstream = await startScriptedUpstream(stage);
  const headgate = await HostedHeadgate.prepare(stage, { policy: "" });
  const { envoy, policy } = await startGeneratedEnvoy(stage, {
    services: services(upstream.port),
    more: limits,
    proxies:
      `headgate: {address: 127.0.0.1, port: ${headgate.grpcPort}, controlPort: 1, ` +
      "rateLimitTimeout: 1s, failureModeDeny: true}",
  });
  await writeFile(headgate.policyPath, policy);
  await headgate.restart();
  const http = new HttpClient();
  stage.atEnd(() => http.close());
  return async (path: string) => {
    const first = await http.send({ port: envoy.port, path });
    const second = await http.send({ port: envoy.port, path });
    return `${first.status} ${second.status}`;
  };
}

describe("bypassed paths at a generated edge", () => {
  it("are whole paths, and prefixes only where the policy writes them", async () => {
    const twice = await startEdge();
    const free = ["/healthz", "/healthz?full=/../pay", "/a/../healthz", "//healthz"];
    const below = ["/static", "/static/", "/static/a/b.css", "/static/a?b=/../c", "/static//b"];
    for (const path of [...free, ...below]) expect(await twice(path), path).toBe("200 200");
    const limited = [
      "/healthz/z",
      "/healthz/",
      "/healthzz",
      "/healthz;a=b",
      "/healthz/..;/draw",
      "/Healthz",
      "/healthz/../pay",
      "/healthz/%2e%2e/buy",
      "/livez",
      "/statics",
      "/static/../sell",
      "/static/%2e%2e/lend",
      "/static/..;/owe",
    ];
    for (const path of limited) expect(await twice(path), path).toBe("200 429");
    // Such a path is sent back as what it means, and is looked at then.
    for (const path of ["/healthz%2f..%2fpay", "/static/..%2fpay", "/static/a%5c..%5cpay"]) {
      expect(await twice(path), path).toBe("307 307");
    }
  });
});
