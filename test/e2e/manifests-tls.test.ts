import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { z } from "zod";
import { TestAuthority } from "../support/certificates.js";
import { freePort } from "../support/free-port.js";
import { freePorts, startPolicyEnvoy } from "../support/generated-envoy.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { HttpClient } from "../support/http-client.js";
import { startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { TlsFolder } from "../support/tls-folder.js";
import { startUpstream } from "../support/upstream.js";
import { waitFor } from "../support/wait.js";
import { readYamlFile } from "../support/yaml-file.js";

const stage = useStage("test");
const authority = new TestAuthority();

/** The settings of the pods, by name. */
function podEnv(): Map<string, string> {
  const [deployment] = readYamlFile("k8s/plain/deployment.yaml");
  const variable = z.object({ name: z.string(), value: z.string() });
  const container = z.object({ env: z.array(variable) });
  const shape = z.object({
    spec: z.object({
      template: z.object({ spec: z.object({ containers: z.tuple([container]) }) }),
    }),
  });
  const [{ env }] = shape.parse(deployment).spec.template.spec.containers;
  return new Map(env.map(({ name, value }) => [name, value]));
}

/** What cert-manager is asked to sign for the pods. */
function serverNames(): readonly string[] {
  const [certificate] = readYamlFile("k8s/plain/certificate.yaml");
  const shape = z.object({ spec: z.object({ dnsNames: z.array(z.string()) }) });
  return shape.parse(certificate).spec.dnsNames;
}

/** A Headgate with the settings of the pods; its files and ports are this machine's. */
async function startPod(policy: string, controlPort: number) {
  const folder = join(stage.folder, "pod");
  await mkdir(join(folder, "policy"), { recursive: true });
  await writeFile(join(folder, "policy", "policy.yaml"), policy);
  const tls = new TlsFolder(join(folder, "tls"));
  const server = authority.issue({ names: [...serverNames()] });
  await tls.write({ server, clientAuthority: authority.certificate });
  const redis = await startRedis(stage);
  await mkdir(join(folder, "redis"));
  await writeFile(join(folder, "redis", "url"), `redis://127.0.0.1:${redis.port}`);
  await writeFile(join(folder, "redis", "auth"), "");
  const monitoringPort = await freePort();
  const env = podEnv();
  for (const [name, value] of env) env.set(name, value.replace("/etc/headgate", folder));
  env.set("HEADGATE_CONTROL_ADDR", `127.0.0.1:${controlPort}`);
  env.set("HEADGATE_MONITORING_ADDR", `127.0.0.1:${monitoringPort}`);
  for (const name of ["GRPC_PORT", "PORT", "NODE_OPTIONS"]) env.delete(name);
  const path = join(folder, "policy");
  const headgate = await HostedHeadgate.prepare(stage, {
    policy: { path },
    env: Object.fromEntries(env),
  });
  return { headgate, monitoringPort };
}

/** The example's policy, for proxies and services of this machine. */
async function localPolicy(changes: {
  readonly headgate: Readonly<Record<string, unknown>>;
  readonly upstreamPort: number;
  readonly listener: Readonly<Record<string, number>>;
}): Promise<string> {
  const tls = new TlsFolder(join(stage.folder, "proxy"));
  const server = authority.issue({ names: ["edge.shop"] });
  await tls.write({ server, clientAuthority: authority.certificate });
  const text = readFileSync("k8s/policy.yaml", "utf8");
  const policy = parse(text.replaceAll("/etc/envoy/headgate", join(stage.folder, "proxy")));
  const { services, proxies } = policy.spec;
  // The name in the certificate stays the one that proxies know.
  proxies.headgate.tls.serverName = proxies.headgate.address;
  Object.assign(proxies.headgate, changes.headgate);
  proxies.listener = changes.listener;
  services[0].upstream = { address: "127.0.0.1", port: changes.upstreamPort };
  return stringify(policy);
}

describe("k8s/", () => {
  it("makes pods that decide for the proxies of its policy, over TLS on both sides", async () => {
    const upstream = await startUpstream(stage);
    const ports = await freePorts();
    const controlPort = await freePort();
    const { headgate, monitoringPort } = await startPod("domain: shop\n", controlPort);
    const policy = await localPolicy({
      headgate: {
        address: "127.0.0.1",
        port: headgate.grpcPort,
        controlPort,
        rateLimitTimeout: "1s",
      },
      upstreamPort: upstream.port,
      listener: { ...ports },
    });
    await writeFile(join(headgate.policyPath, "policy.yaml"), policy);
    await headgate.restart();
    const envoy = await startPolicyEnvoy(stage, { policy, ports });
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const headers = { "x-plan": "free", "x-user": "a" };
    await waitFor("it is limited", async () => {
      return (await http.send({ port: envoy.port, headers })).status === 429;
    });
    expect((await http.send({ port: envoy.port })).status).toBe(200);
    await waitFor("it is driven", async () => {
      // Envoy reports no request that it served before its report stream was open.
      await http.send({ port: envoy.port });
      return envoy.runtimeValue("circuit_breakers.orders.default.max_requests");
    });
    const json = { port: monitoringPort, path: "/json", headers: {}, body: "{}" };
    expect((await http.send(json)).status).toBe(404);
    expect((await http.send({ port: monitoringPort, path: "/readyz" })).status).toBe(200);
    expect((await headgate.postJson({ domain: "shop" })).status).toBe(403);
  });
});
