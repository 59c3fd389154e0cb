import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RateLimitUnit } from "../../src/gen/api/ratelimit/config/ratelimit/v3/rls_conf_pb.js";
import { TestAuthority, type TestCertificate } from "../support/certificates.js";
import { freePort } from "../support/free-port.js";
import { HeadgateProcess, type RunningHeadgate } from "../support/headgate-process.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { RedisServer } from "../support/redis-server.js";
import { outcomeOf, RlsClient } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { trueTimes } from "../support/true-times.js";
import { waitFor } from "../support/wait.js";
import { type ConfigInit, XdsServer } from "../support/xds-server.js";

/**
 * Headgate in the place of the rate-limit service that Envoy Gateway starts: with exactly the
 * environment of its pod, and a control plane that asks for a client certificate.
 *
 * Source: envoyproxy/gateway 1.9, internal/infrastructure/kubernetes/ratelimit/resource.go.
 */
const stage = useStage("test");

let redis: RedisServer;
let certs: string;
let authority: TestAuthority;

beforeEach(async () => {
  redis = await RedisServer.start({ engine: "redis" });
  certs = join(stage.folder, "certs");
  await mkdir(certs);
  authority = new TestAuthority();
  await mount(authority.issue({ names: ["envoy-ratelimit", "localhost"] }));
});

afterEach(() => redis.stop());

/** What the Secret holds that the pod mounts. */
async function mount({ certificate, key }: TestCertificate): Promise<void> {
  await writeFile(join(certs, "tls.crt"), certificate);
  await writeFile(join(certs, "tls.key"), key);
  await writeFile(join(certs, "ca.crt"), authority.certificate);
}

/** Not of the pod, which waits for ten seconds and more between two tries, and before it ends. */
const shorter = {
  XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: "100ms",
  XDS_CLIENT_BACKOFF_MAX_INTERVAL: "300ms",
  HEADGATE_DRAIN_DELAY_MS: "0",
};

/** The pod's environment; what differs is where this machine has its ports and files. */
async function podEnvironment(controlPlanePort: number): Promise<Record<string, string>> {
  return {
    RUNTIME_ROOT: "/data",
    RUNTIME_SUBDIRECTORY: "ratelimit",
    RUNTIME_IGNOREDOTFILES: "true",
    RUNTIME_WATCH_ROOT: "false",
    LOG_LEVEL: "info",
    USE_STATSD: "false",
    CONFIG_TYPE: "GRPC_XDS_SOTW",
    CONFIG_GRPC_XDS_SERVER_URL: `localhost:${controlPlanePort}`,
    CONFIG_GRPC_XDS_NODE_ID: "envoy-ratelimit",
    GRPC_SERVER_USE_TLS: "true",
    GRPC_SERVER_TLS_CERT: join(certs, "tls.crt"),
    GRPC_SERVER_TLS_KEY: join(certs, "tls.key"),
    GRPC_SERVER_TLS_CA_CERT: join(certs, "ca.crt"),
    CONFIG_GRPC_XDS_SERVER_USE_TLS: "true",
    CONFIG_GRPC_XDS_CLIENT_TLS_CERT: join(certs, "tls.crt"),
    CONFIG_GRPC_XDS_CLIENT_TLS_KEY: join(certs, "tls.key"),
    CONFIG_GRPC_XDS_SERVER_TLS_CACERT: join(certs, "ca.crt"),
    FORCE_START_WITHOUT_INITIAL_CONFIG: "true",
    REDIS_SOCKET_TYPE: "tcp",
    REDIS_URL: `127.0.0.1:${redis.port}`,
    USE_PROMETHEUS: "true",
    PROMETHEUS_ADDR: `:${await freePort()}`,
    PROMETHEUS_MAPPER_YAML: "/etc/statsd-exporter/conf.yaml",
    // Not of the pod: a machine that runs many tests at once may be slow.
    HEADGATE_STORE_BUDGET_MS: "5000",
    ...(trueTimes ? {} : shorter),
  };
}

async function startControlPlane(port: number): Promise<XdsServer> {
  const folder = join(stage.folder, `plane-${(await readdir(stage.folder)).length}`);
  await mkdir(folder);
  const { certificate, key } = authority.issue({ names: ["envoy-gateway", "localhost"] });
  const tls = {
    certificateFile: join(folder, "tls.crt"),
    keyFile: join(folder, "tls.key"),
    authorityFile: join(certs, "ca.crt"),
  };
  await writeFile(tls.certificateFile, certificate);
  await writeFile(tls.keyFile, key);
  return XdsServer.start(stage, { port, tls });
}

/** A listener's limits as Envoy Gateway translates a BackendTrafficPolicy. */
function listenerConfig(requestsPerUnit: number): ConfigInit {
  const route = "httproute/default/shop/rule/0";
  return {
    name: "default/eg/http",
    domain: "default/eg/http",
    descriptors: [
      {
        key: route,
        value: route,
        descriptors: [
          {
            key: "rule-0-match-0",
            rateLimit: { unit: RateLimitUnit.HOUR, requestsPerUnit },
            metadata: { policy: "default/shop", weight: 0.5 },
          },
        ],
      },
    ],
  };
}

/** Asks as an Envoy of the fleet does, over mutual TLS, for one user of the route. */
async function ask(headgate: RunningHeadgate, user: string): Promise<string> {
  const own = authority.issue({ names: ["envoy"] });
  const client = new RlsClient({
    target: `127.0.0.1:${headgate.grpcPort}`,
    serverName: "envoy-ratelimit",
    credentials: credentials.createSsl(
      Buffer.from(authority.certificate),
      Buffer.from(own.key),
      Buffer.from(own.certificate),
    ),
  });
  const entries = ["httproute/default/shop/rule/0", "httproute/default/shop/rule/0"].join("=");
  const answer = await client.ask({
    domain: "default/eg/http",
    descriptors: [[entries, `rule-0-match-0=${user}`]],
  });
  client.close();
  return outcomeOf(answer);
}

/** Starts its program, and waits as the kubelet does, by the startup probe. */
async function startPodProcess(controlPlanePort: number): Promise<HeadgateProcess> {
  const env = await podEnvironment(controlPlanePort);
  const headgate = await HeadgateProcess.prepare(stage, { env });
  headgate.spawn();
  const isStarted = async () => (await headgate.get("/healthcheck")).status === 200;
  await waitFor("the startup probe succeeds", isStarted, { withinMs: 60_000, everyMs: 50 });
  return headgate;
}

/** As `startPodProcess`, beside others in one process. */
async function startPod(controlPlanePort: number): Promise<HostedHeadgate> {
  const env = await podEnvironment(controlPlanePort);
  const headgate = await HostedHeadgate.open(stage, { env });
  expect((await headgate.get("/healthcheck")).status).toBe(200);
  return headgate;
}

function policyLoads(headgate: RunningHeadgate): Promise<number> {
  return headgate.metric("headgate_policy_loads_total", { result: "loaded" });
}

describe("the environment of Envoy Gateway's rate-limit pod", () => {
  it("starts Headgate before the control plane, which gives and changes a policy", async () => {
    const port = await freePort();
    const headgate = await startPodProcess(port);
    expect(await ask(headgate, "a")).toBe("UNAVAILABLE");
    const readiness = await headgate.get("/readyz");
    expect(readiness.status).toBe(503);
    expect(JSON.parse(readiness.body)).toMatchObject({
      status: "waiting for a policy",
      policy: { controlPlane: { isConnected: false, lastFailure: "unreachable" } },
    });

    const plane = await startControlPlane(port);
    await plane.hold("1", [listenerConfig(2)]);
    await waitFor("it is ready", async () => (await headgate.get("/readyz")).status === 200, {
      withinMs: 30_000,
    });
    const [subscription] = await plane.requests();
    expect(subscription).toMatchObject({ nodeId: "envoy-ratelimit", version: "" });
    const outcomes: string[] = [];
    for (let count = 0; count < 3; count += 1) outcomes.push(await ask(headgate, "a"));
    expect(outcomes).toEqual(["OK", "OK", "OVER_LIMIT"]);

    await plane.hold("2", [listenerConfig(3)]);
    await waitFor("the change is active", async () => (await policyLoads(headgate)) === 2);
    expect(await ask(headgate, "a")).toBe("OK");
    expect(await ask(headgate, "a")).toBe("OVER_LIMIT");

    await plane.hold("3", []);
    await waitFor("nothing is limited", async () => (await policyLoads(headgate)) === 3);
    expect(await ask(headgate, "a")).toBe("OK");
    const { output } = headgate.process;
    expect(output).not.toContain("PRIVATE KEY");
    expect(await headgate.terminate()).toEqual({ code: 0 });
  });

  it("keeps deciding while the control plane is away, and hears what it says after", async () => {
    const plane = await startControlPlane(0);
    await plane.hold("1", [listenerConfig(1)]);
    const headgate = await startPod(plane.port);
    await waitFor("it is ready", async () => (await headgate.get("/readyz")).status === 200);
    expect(await ask(headgate, "a")).toBe("OK");
    await plane.kill();
    await waitFor("it knows", async () => (await headgate.metric("headgate_xds_connected")) === 0);
    expect(await ask(headgate, "a")).toBe("OVER_LIMIT");
    expect(JSON.parse((await headgate.get("/readyz")).body)).toMatchObject({ status: "degraded" });

    // Certificates are renewed meanwhile; only the new ones are good for anything now.
    authority = new TestAuthority();
    await mount(authority.issue({ names: ["envoy-ratelimit", "localhost"] }));
    const renewed = await startControlPlane(plane.port);
    await renewed.hold("1", [listenerConfig(5)]);
    await waitFor("it is active", async () => (await policyLoads(headgate)) === 2, {
      withinMs: 40_000,
    });
    expect(await headgate.metric("headgate_xds_connected")).toBe(1);
  });

  it("keeps the last good policy when the next one is wrong, and says why", async () => {
    const plane = await startControlPlane(0);
    await plane.hold("1", [listenerConfig(1)]);
    const headgate = await startPod(plane.port);
    await waitFor("it is ready", async () => (await headgate.get("/readyz")).status === 200);
    await plane.hold("2", [listenerConfig(9), { name: "broken", descriptors: [{ key: "k" }] }]);
    const nack = await plane.requestWith("the NACK", ({ refusal }) => refusal !== undefined);
    expect(nack.refusal).toContain("broken:1:9: HG130");
    expect(await ask(headgate, "a")).toBe("OK");
    expect(await ask(headgate, "a")).toBe("OVER_LIMIT");
    expect(await headgate.metric("headgate_policy_stale")).toBe(1);
    expect(
      await headgate.metric("headgate_xds_responses_total", { answer: "nack" }),
    ).toBeGreaterThan(0);
  });
});
