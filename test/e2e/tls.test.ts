import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { TestAuthority, type TestCertificate } from "../support/certificates.js";
import type { EnvoyTls } from "../support/envoy-config.js";
import {
  edgePolicy,
  type Gateway,
  type GatewayOptions,
  startHostedGateway,
  statusOf,
} from "../support/gateway.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { useStage } from "../support/stage.js";
import { TlsFolder } from "../support/tls-folder.js";
import { Traffic } from "../support/traffic.js";
import { waitFor } from "../support/wait.js";

const policy = edgePolicy(`
  - key: account
    rate_limit: {unit: hour, requests_per_unit: 1000000}
  - key: narrow
    rate_limit: {unit: hour, requests_per_unit: 1}
`);

const serverName = "headgate.shop";
const clientName = "spiffe://shop/ns/edge/sa/envoy";

const authority = new TestAuthority();
const stranger = new TestAuthority();
const client = authority.issue({ uris: [clientName] });

const stage = useStage("test");
let files: TlsFolder;

function issueServer(): TestCertificate {
  return authority.issue({ names: [serverName] });
}

beforeEach(async () => {
  files = new TlsFolder(join(stage.folder, "certs"));
  await files.write({ server: issueServer(), clientAuthority: authority.certificate });
});

function start(
  tls: Partial<EnvoyTls>,
  { env = {}, ...rest }: Partial<GatewayOptions> & { env?: Readonly<Record<string, string>> } = {},
): Promise<Gateway<HostedHeadgate>> {
  return startHostedGateway(stage, {
    policy,
    descriptorKeys: [["account"], ["narrow"]],
    headgateEnvs: [{ ...files.mutualEnv, GRPC_CLIENT_TLS_SAN: clientName, ...env }],
    ...rest,
    envoy: { tls: { authority: authority.certificate, serverName, ...tls }, ...rest.envoy },
  });
}

function refused({ headgates }: Gateway<HostedHeadgate>, cause: string): Promise<number> {
  return headgates[0].metric("headgate_tls_refused_connections_total", { cause });
}

describe("Envoy with a certificate", () => {
  it("is answered over TLS", async () => {
    const gateway = await start({ client });
    const statuses = [];
    for (let i = 0; i < 2; i += 1) statuses.push(await statusOf(gateway.send({ narrow: "a" })));
    expect(statuses).toEqual(["200", "429"]);
    expect(await gateway.envoy.stat("cluster.headgate.ssl.handshake")).toBe(1);
    expect(await gateway.envoy.stat("cluster.headgate.upstream_cx_http2_total")).toBe(1);
  });

  it("fails no request while certificates change and connections reach their age", async () => {
    const gateway = await start(
      { client },
      {
        env: {
          GRPC_MAX_CONNECTION_AGE: "300ms",
          GRPC_MAX_CONNECTION_AGE_GRACE: "10s",
          HEADGATE_DRAIN_DELAY_MS: "0",
        },
      },
    );
    const [headgate] = gateway.headgates;
    const traffic = Traffic.start(stage, {
      callersCount: 4,
      call: () => statusOf(gateway.send({ account: "busy" })),
    });
    traffic.pauseBetweenCalls(5);
    const loadedCount = (): Promise<number> =>
      headgate.metric("headgate_tls_certificate_loads_total", { result: "loaded" });
    for (let count = 2; count <= 4; count += 1) {
      await files.write({ server: issueServer() });
      await waitFor("it is loaded", async () => (await loadedCount()) >= count);
    }
    const handshakes = (): Promise<number> => gateway.envoy.stat("cluster.headgate.ssl.handshake");
    const before = await handshakes();
    await waitFor("Envoy connects anew", async () => (await handshakes()) >= before + 2);
    const { total, byOutcome } = await traffic.stop();
    expect(byOutcome).toEqual({ 200: total });
    expect(await gateway.envoy.stat("cluster.upstream.ratelimit.error")).toBe(0);
    expect(await headgate.terminate()).toBe(true);
  });

  it("is answered over a Unix socket", async () => {
    const path = join(stage.folder, "grpc.sock");
    const gateway = await start(
      { client },
      { env: { GRPC_UDS: path }, envoy: { headgateSocket: path } },
    );
    expect(await statusOf(gateway.send({ narrow: "a" }))).toBe("200");
    expect(await statusOf(gateway.send({ narrow: "a" }))).toBe("429");
  });
});

describe("Envoy that may not come in", () => {
  it.each<readonly [string, string, Partial<EnvoyTls>]>([
    ["no certificate", "noClientCertificate", {}],
    ["one of others", "untrustedClientCertificate", { client: stranger.issue() }],
    ["another name", "wrongClientSan", { client: authority.issue({ names: ["edge.shop"] }) }],
    [
      "no trust in ours",
      "serverCertificateDistrusted",
      { client, authority: stranger.certificate },
    ],
  ])("has no decision with %s, and the cause is counted and logged", async (_what, cause, tls) => {
    const gateway = await start(tls);
    expect(await statusOf(gateway.send({ narrow: "a" }))).toBe("503");
    await waitFor("it is counted", async () => (await refused(gateway, cause)) > 0);
    const { output } = gateway.headgates[0];
    expect(output).toContain(`"cause":"${cause}"`);
    // Nothing of the caller's certificate, and nothing of how we are made.
    expect(output).not.toMatch(/edge\.shop|Test certificate|node:internal/);
    expect(await gateway.headgates[0].metric("headgate_internal_errors_total")).toBe(0);
  });
});

describe("a start with TLS files that are wrong", () => {
  it("ends with 2 and names the settings", async () => {
    await files.write({ server: { certificate: "", key: issueServer().key } });
    const env = { ...files.mutualEnv, GRPC_CLIENT_TLS_CACERT: join(stage.folder, "none") };
    const { code, output } = await HostedHeadgate.startFailure(stage, { policy, env });
    expect(code).toBe(2);
    expect(output).toContain("GRPC_CLIENT_TLS_CACERT names a file that cannot be read");
    expect(output).not.toContain("    at ");
  });
});
