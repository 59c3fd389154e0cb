import { join } from "node:path";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type ChannelCredentials, credentials } from "@grpc/grpc-js";
import { beforeAll, describe, expect, it } from "vitest";
import { grpcStatuses } from "../../src/core/base/grpc-status.js";
import { DiscoveryRequestSchema } from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { LoadStatsRequestSchema } from "../../src/gen/envoy/service/load_stats/v3/lrs_pb.js";
import { runtimeTypeUrl } from "../../src/rpc/control/layer-encoder.js";
import { TestAuthority } from "../support/certificates.js";
import { type ClientStream, ControlClient } from "../support/control-client.js";
import { testNode } from "../support/control-rig.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { QuotaClient, type QuotaClientStream } from "../support/quota-client.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { TlsFolder } from "../support/tls-folder.js";
import { waitFor, within } from "../support/wait.js";

const limitHz = 100;

const policy = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: edge
      descriptors:
        - {key: tenant, rate_limit: {name: pace, unit: second, requests_per_unit: ${limitHz}}}
  quotas:
    - {name: pace, domain: edge, bucket: [{header: x-tenant, as: tenant}]}
`;

const permits = 100;

const servicePolicy = `${policy}  services:
    - name: orders
      concurrency:
        law: fixed
        limits: {max: ${permits}}
        sources: [loadReports]
        feedback: [circuitBreakers]
`;

const authority = new TestAuthority();
const honestName = "spiffe://shop.example/ns/edge/sa/honest";
const lateName = "spiffe://shop.example/ns/edge/sa/late";
const liarName = "spiffe://shop.example/ns/evil/sa/liar";

/** A client's way in, by a certificate that was made just now. */
function credentialsOf(uri: string): ChannelCredentials {
  const { key, certificate } = authority.issue({ uris: [uri] });
  const [root, ...pair] = [authority.certificate, key, certificate].map((pem) => Buffer.from(pem));
  return credentials.createSsl(root ?? null, pair[0] ?? null, pair[1] ?? null);
}

const bucketOf = (tenant: string) => ({ quota: "pace", tenant });

/** Hits a second that it was told last of a tenant. */
function reportedHz({ actions }: QuotaClientStream, tenant: string): number {
  return actions.findLast(({ id }) => id["tenant"] === tenant)?.hz ?? 0;
}

/** An Envoy that is asked for so many hits a second, lets pass what it may, and says so. */
class HonestEnvoy {
  readonly #stream: QuotaClientStream;
  readonly #hz: number;
  #reportedMs = performance.now();

  constructor(stream: QuotaClientStream, hz: number) {
    this.#stream = stream;
    this.#hz = hz;
    stream.report("edge", [{ id: bucketOf("a") }]);
  }

  /** Hits a second that it was told last. */
  get reportedHz(): number {
    return reportedHz(this.#stream, "a");
  }

  /** Tells what passed since the last time; as Envoy does, with that time cut to whole seconds. */
  report(): void {
    const elapsed = (performance.now() - this.#reportedMs) / 1_000;
    if (elapsed < 1) return;
    this.#reportedMs += elapsed * 1_000;
    const asked = Math.round(this.#hz * elapsed);
    const allowed = Math.min(asked, Math.floor(this.reportedHz * elapsed));
    const usage = { allowed, denied: asked - allowed, elapsedSeconds: Math.floor(elapsed) };
    this.#stream.report("edge", [{ id: bucketOf("a"), ...usage }]);
  }
}

/** A turn that is later than that is a stall of this machine, in milliseconds. */
const stallMsMin = 500;

/** How long it is felt: Envoys report late in it, and are judged by when their reports come. */
const stallFeltMs = 3_000;

/** What somebody is told turn by turn, but for moments in which this machine has stalled. */
class UnstalledReadings {
  readonly values: number[] = [];
  #lastMs = performance.now();
  #feltUntilMs = 0;

  add(value: number): void {
    const nowMs = performance.now();
    if (nowMs - this.#lastMs >= stallMsMin) this.#feltUntilMs = nowMs + stallFeltMs;
    this.#lastMs = nowMs;
    if (nowMs >= this.#feltUntilMs) this.values.push(value);
  }
}

const loadPath = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";

type LoadStatsInit = MessageInitShape<typeof LoadStatsRequestSchema>;

function loadStats(init: LoadStatsInit): Uint8Array {
  return toBinary(LoadStatsRequestSchema, create(LoadStatsRequestSchema, init));
}

/** An Envoy before a service, which tells each second what it has in work there. */
class LoadedEnvoy {
  readonly #layers: ClientStream;
  readonly #loads: ClientStream;
  #reportedMs = performance.now();
  #seenCount = 0;

  constructor(client: ControlClient, id: string) {
    this.#layers = client.subscribe(testNode(id));
    this.#loads = client.open(loadPath);
    this.#loads.send(loadStats({ node: testNode(id) }));
  }

  /** Requests that it may have in work; undefined before it is told. */
  get share(): number | undefined {
    const share =
      this.#layers.layers.at(-1)?.values["circuit_breakers.orders.default.max_requests"];
    return share === undefined ? undefined : Number(share);
  }

  /** Takes the layer that came last. */
  follow(): void {
    const { layers } = this.#layers;
    if (layers.length === this.#seenCount) return;
    this.#seenCount = layers.length;
    const responseNonce = layers.at(-1)?.nonce ?? "";
    const init = { typeUrl: runtimeTypeUrl, responseNonce, resourceNames: ["headgate"] };
    this.#layers.send(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, init)));
  }

  report(inFlight: number): void {
    if (performance.now() - this.#reportedMs < 1_000) return;
    this.#reportedMs = performance.now();
    const count = BigInt(inFlight);
    const counts = { totalRequestsInProgress: count, totalSuccessfulRequests: 10n * count };
    const upstreamLocalityStats = [{ ...counts, totalIssuedRequests: 10n * count }];
    this.#loads.send(
      loadStats({ clusterStats: [{ clusterName: "orders", upstreamLocalityStats }] }),
    );
  }
}

const stage = useStage("file");
let files: TlsFolder;

beforeAll(async () => {
  files = new TlsFolder(join(stage.folder, "certs"));
  const server = authority.issue({ names: ["headgate.shop"] });
  await files.write({ server, clientAuthority: authority.certificate });
});

async function start(env: Readonly<Record<string, string>> = {}, text = policy) {
  const headgate = await HostedHeadgate.start(stage, {
    policy: text,
    env: { ...files.mutualEnv, ...env },
  });
  const port = headgate.portOf("control");
  const closing = <C extends { close(): void }>(client: C): C => {
    stage.atEnd(() => client.close());
    return client;
  };
  return {
    headgate,
    failed: (cause: string) => headgate.metric("headgate_control_failed_streams_total", { cause }),
    quotas: (uri: string) => closing(new QuotaClient(port, credentialsOf(uri))),
    control: (uri: string) => closing(new ControlClient(port, credentialsOf(uri))),
  };
}

// They wait for most of their time.
it.concurrent("leaves an honest Envoy its share beside twenty streams of a liar", async () => {
  const { headgate, quotas } = await start();
  const demandHz = 30;
  const honest = new HonestEnvoy(quotas(honestName).open("edge-1"), demandHz);
  const isServed = (envoy: HonestEnvoy): boolean => {
    envoy.report();
    return envoy.reportedHz > 0.9 * demandHz;
  };
  await waitFor("it has what it asks for", () => isServed(honest));
  const liar = quotas(liarName);
  const streams = Array.from({ length: 20 }, (_, i) => liar.open(`liar-${i}`));
  const lie = { id: bucketOf("a"), allowed: 1_000_000, denied: 1_000_000, elapsedSeconds: 3_600 };
  const reported = new UnstalledReadings();
  const seconds = { withinMs: 90_000, everyMs: 100 };
  const lieOn = (): boolean => {
    for (const stream of streams) stream.report("edge", [lie]);
    honest.report();
    reported.add(honest.reportedHz);
    return reported.values.length > 150;
  };
  await waitFor("they have told their lies for a while", lieOn, seconds);
  expect(Math.min(...reported.values)).toBeGreaterThan(0.9 * demandHz);
  // And who comes only now has as much.
  const late = new HonestEnvoy(quotas(lateName).open("edge-2"), demandHz);
  await waitFor("who comes later has it", () => lieOn() && isServed(late), seconds);
  const unusual = "headgate_quota_unusual_reports_total";
  expect(await headgate.metric(unusual, { reason: "unassigned" })).toBeGreaterThan(0);
  expect(await headgate.metric(unusual, { reason: "too_much" })).toBeGreaterThan(0);
  expect(await headgate.metric("headgate_internal_errors_total")).toBe(0);
});

// Each name once had a part of the limit: of 100 permits, 20 names left 4 to an honest Envoy.
it.concurrent("leaves an honest Envoy its permits beside twenty names of a liar", async () => {
  const { headgate, control } = await start({}, servicePolicy);
  const inFlight = 20;
  const honest = [new LoadedEnvoy(control(honestName), "edge-1")];
  const isServed = (envoy: LoadedEnvoy | undefined): boolean => (envoy?.share ?? 0) >= inFlight;
  const live = (): void => {
    for (const envoy of honest) {
      envoy.follow();
      envoy.report(inFlight);
    }
  };
  await waitFor("it has all there is", () => {
    live();
    return honest[0]?.share === permits;
  });
  const liar = control(liarName);
  // Half of them take what they are told, and say more than that.
  const liars = Array.from({ length: 20 }, (_, i) => new LoadedEnvoy(liar, `liar-${i}`));
  const shares: number[] = [];
  const seconds = { withinMs: 90_000, everyMs: 100 };
  const lieOn = (): boolean => {
    live();
    for (const [i, envoy] of liars.entries()) {
      if (i % 2 === 0) envoy.follow();
      envoy.report(1_000_000);
    }
    shares.push(honest[0]?.share ?? 0);
    return shares.length > 200;
  };
  await waitFor("they have told their lies for a while", lieOn, seconds);
  expect(shares.filter((share) => share < inFlight)).toEqual([]);
  expect(liars.every(({ share = 0 }) => share >= 1 && share <= permits / 20)).toBe(true);
  const late = new LoadedEnvoy(control(lateName), "edge-2");
  honest.push(late);
  await waitFor("who comes later has its part", () => lieOn() && isServed(late), seconds);
  expect(honest.every(isServed)).toBe(true);
  expect(await headgate.metric("headgate_internal_errors_total")).toBe(0);
});

// Each replica once weighed the identity for itself, and each of its streams among replicas.
it.concurrent("leaves an honest Envoy its share beside liars at two processes", async () => {
  const redis = await startRedis(stage);
  const env = { ...files.mutualEnv, ...redisEnv(redis.port) };
  const headgates = await Promise.all(
    [1, 2].map(() => HeadgateProcess.start(stage, { policy, env })),
  );
  const clientOf = (headgate: HeadgateProcess | undefined, uri: string): QuotaClient => {
    const client = new QuotaClient(headgate?.portOf("control") ?? 0, credentialsOf(uri));
    stage.atEnd(() => client.close());
    return client;
  };
  const demandHz = 40;
  const honest = new HonestEnvoy(clientOf(headgates[1], honestName).open("edge-1"), demandHz);
  await waitFor("it has what it asks for", () => {
    honest.report();
    return honest.reportedHz > 0.9 * demandHz;
  });
  const streams = headgates.flatMap((headgate) => {
    const liar = clientOf(headgate, liarName);
    return Array.from({ length: 10 }, (_, i) => liar.open(`liar-${i}`));
  });
  const lie = { id: bucketOf("a"), allowed: 1_000_000, denied: 1_000_000, elapsedSeconds: 3_600 };
  const reported = new UnstalledReadings();
  const lieOn = (): boolean => {
    for (const stream of streams) stream.report("edge", [lie]);
    honest.report();
    reported.add(honest.reportedHz);
    return reported.values.length > 300;
  };
  const seconds = { withinMs: 90_000, everyMs: 100 };
  await waitFor("they have told their lies for a while", lieOn, seconds);
  // In the first seconds neither process knows what the other has.
  expect(Math.min(...reported.values.slice(-100))).toBeGreaterThan(0.9 * demandHz);
  for (const headgate of headgates)
    expect(await headgate.metric("headgate_internal_errors_total")).toBe(0);
});

describe("a liar", () => {
  it("lets no other identity take an Envoy's name, on any stream, and its own again", async () => {
    const { headgate, quotas, control, failed } = await start();
    const first = control(honestName).subscribe(testNode("edge-1"));
    await waitFor("it has its layer", () => first.layers.length > 0);
    const other = control(liarName);
    const load = other.open(loadPath);
    load.send(loadStats({ node: testNode("edge-1") }));
    const metrics = other.push({ identifier: { node: testNode("edge-1") }, envoyMetrics: [] });
    const taken = [
      other.subscribe(testNode("edge-1")),
      load,
      metrics,
      quotas(liarName).open("edge-1"),
    ];
    for (const { ended } of taken) {
      expect((await within("it is refused", 10_000, ended)).code).toBe(
        grpcStatuses.permissionDenied,
      );
    }
    expect(await failed("owned_by_another")).toBe(taken.length);
    const lines = headgate.output.split("\n").filter((line) => line.includes("owned_by_another"));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(liarName);
    expect(await failed("taken_over")).toBe(0);
    // The same identity, by a certificate that was renewed.
    const again = control(honestName).subscribe(testNode("edge-1"));
    await waitFor("it has its layer", () => again.layers.length > 0);
    expect((await within("the old one ends", 10_000, first.ended)).code).toBe(
      grpcStatuses.unavailable,
    );
    expect(await failed("taken_over")).toBe(1);
  });

  it("lets a certificate speak for the Envoys that a rule gives it, and no other", async () => {
    const rules = "spiffe://shop.example/ns/{ns}/sa/honest  edge-*.{ns}  {ns}";
    const { quotas, control, failed } = await start({ HEADGATE_CONTROL_NODES: rules });
    const own = control(honestName).subscribe(testNode("edge-7.edge"));
    await waitFor("it has its layer", () => own.layers.length > 0);
    const refused = [
      control(honestName).subscribe(testNode("edge-7.evil")),
      control(honestName).subscribe({ ...testNode("edge-8.edge"), cluster: "evil" }),
      control(liarName).subscribe(testNode("edge-7.evil")),
      quotas(honestName).open("liar-1"),
      quotas(liarName).open(),
    ];
    for (const { ended } of refused) {
      expect((await within("it is refused", 10_000, ended)).code).toBe(
        grpcStatuses.permissionDenied,
      );
    }
    expect(await failed("identity_not_allowed")).toBe(refused.length);
    const quota = quotas(honestName).open("edge-9.edge");
    quota.report("edge", [{ id: bucketOf("a") }]);
    await waitFor("its bucket is told", () => reportedHz(quota, "a") > 0);
  });

  it("gives one identity its part of streams, Envoys and buckets, and others theirs", async () => {
    const { headgate, quotas, control, failed } = await start({
      HEADGATE_CONTROL_IDENTITY_PERCENT_MAX: "1",
    });
    const many = control(liarName);
    const nodes = Array.from({ length: 101 }, (_, i) => many.subscribe(testNode(`liar-${i}`)));
    const refusal = Promise.race(nodes.map(({ ended }) => ended));
    expect((await within("one is refused", 20_000, refusal)).code).toBe(
      grpcStatuses.resourceExhausted,
    );
    await waitFor("all but one have a layer", () => {
      return nodes.filter(({ layers }) => layers.length > 0).length === 100;
    });
    expect(await failed("too_many_of_identity")).toBe(1);
    const liar = quotas(liarName);
    const streams = Array.from({ length: 310 }, () => liar.open());
    for (const [i, stream] of streams.slice(0, 11).entries()) {
      const usages = Array.from({ length: 1_000 }, (_, at) => ({ id: bucketOf(`${i}-${at}`) }));
      stream.report("edge", usages);
    }
    const overflows = (bound: string) =>
      headgate.metric("headgate_quota_overflows_total", { bound });
    const holders = () => headgate.metric("headgate_quota_holders");
    await waitFor("every bucket has its place, or is beyond the identity's part", async () => {
      return (await holders()) + (await overflows("identity")) === 11_000;
    });
    // Its part is a hundredth of a million, and of the bytes that all buckets may have.
    const heldCount = await holders();
    expect(heldCount).toBeLessThanOrEqual(10_000);
    expect(heldCount).toBeGreaterThan(1_000);
    // Of a domain's descriptors it has a hundredth, too.
    expect(await overflows("domain")).toBe(heldCount - 1_000);
    await waitFor("streams beyond 400 are refused", async () => {
      return (await failed("too_many_of_identity")) === 11;
    });
    const honest = quotas(honestName).open("edge-1");
    honest.report("edge", [{ id: bucketOf("honest") }]);
    await waitFor("others are served", () => reportedHz(honest, "honest") > 0);
    const envoy = control(honestName).subscribe(testNode("edge-1"));
    await waitFor("others have a layer", () => envoy.layers.length > 0);
    expect(await overflows("domain")).toBe(heldCount - 1_000);
    expect(await headgate.metric("headgate_internal_errors_total")).toBe(0);
  });
});
