import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import type { Random } from "../../src/core/base/clock.js";
import type { Envoy } from "../support/envoy.js";
import { FakeRandom } from "../support/fake-random.js";
import { startGeneratedEnvoy } from "../support/generated-envoy.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { startScriptedUpstream } from "../support/scripted-upstream.js";
import { firstSeed, seedsFirstName } from "../support/seeds.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");
const seed = firstSeed(Date.now() % 1_000_000);

/** Requests in all, and how many of them the sender's address may pass. */
const requestCount = 200;
const addressHits = 120;

/** How many requests each value of a header, path, cookie or whatever may pass. */
const valueHits = 3;

/** Envoy takes heads of requests of 60 KiB, by default: most of it is in one value. */
const longest = 59_000;

/** Envoy takes 100 headers, by default; some are its own. */
const headersMax = 85;

/** What callers choose: each value has a limit of its own, but for the plain one. */
const chosen = [
  { name: "user", part: "{header: x-user, as: user}", plain: "plain" },
  { name: "session", part: "{header: cookie, as: session}", plain: "a=b" },
  { name: "path", part: '{header: ":path", as: path}', plain: "/" },
  { name: "method", part: '{header: ":method", as: method}', plain: "GET" },
  { name: "host", part: '{header: ":authority", as: host}', plain: "orders" },
] as const;

type Chosen = (typeof chosen)[number]["name"];

/** What is chosen of a request, byte by byte, and how many other headers it has. */
interface RawRequest extends Readonly<Record<Chosen, Buffer>> {
  readonly headerCount: number;
}

const plainRequest: RawRequest = {
  ...(Object.fromEntries(chosen.map(({ name, plain }) => [name, Buffer.from(plain)])) as Record<
    Chosen,
    Buffer
  >),
  headerCount: 0,
};

function limitsOf({ name, plain }: (typeof chosen)[number]): string {
  return `
          - {key: ${name}, rate_limit: {unit: hour, requests_per_unit: ${valueHits}}}
          - {key: ${name}, value: "${plain}", rate_limit: {unlimited: true}}`;
}

const limits = `
    rateLimits:
      - domain: shop
        descriptors:
          - {key: remote_address, rate_limit: {unit: hour, requests_per_unit: ${addressHits}}}
${chosen.map(limitsOf).join("")}
  `;

function servicesAt(port: number, more: string): string {
  return `
    - name: orders
      upstream: {address: 127.0.0.1, port: ${port}}
      ${more === "" ? "" : "admission: {}"}
      rateLimit:
        domain: shop
        ${more}
        descriptors:
          - [remote_address]
${chosen.map(({ part }) => `          - [${part}]`).join("\n")}
  `;
}

/** Bytes that Envoy lets through in values of headers: all but control characters. */
function valueBytes(random: Random, length: number): Buffer {
  const [from, to] = random.next() < 0.5 ? [0x80, 0x100] : [0x21, 0x7f];
  return Buffer.from(Array.from({ length }, () => from + Math.floor(random.next() * (to - from))));
}

function pick<Item>(random: Random, items: readonly Item[]): Item {
  const item = items[Math.floor(random.next() * items.length)];
  if (item === undefined) throw new Error("nothing to pick");
  return item;
}

/** Requests that are odd in one way each; a few values come again and again. */
function hostileRequests(random: Random): readonly RawRequest[] {
  const values = [
    Buffer.of(0xff),
    Buffer.of(0xfe),
    Buffer.of(0xc3, 0xa9),
    ...[255, 256, 257, 17_000, longest, longest].map((length) => valueBytes(random, length)),
  ];
  const paths = [
    `/?q=${"a".repeat(17_000)}`,
    `/?q=${"a".repeat(16_999)}b`,
    "/%ff%2e%2e/x",
    "/a//../b;c=d?%",
    `/${"p/".repeat(8_000)}`,
    `/${"a".repeat(longest)}`,
    `/?q=${"a".repeat(longest)}`,
  ];
  const odd: Readonly<Record<Chosen, readonly Buffer[]>> = {
    user: values,
    session: values,
    path: paths.map((path) => Buffer.from(path)),
    // Envoy itself refuses the long ones.
    method: ["PURGE", "M-SEARCH", "M".repeat(1_000), "M".repeat(longest)].map((method) =>
      Buffer.from(method),
    ),
    host: [
      "ORDERS:80",
      "[::1]",
      `${"b.".repeat(2_000)}example`,
      `${"b.".repeat(longest / 2)}example`,
    ].map((host) => Buffer.from(host)),
  };
  return Array.from({ length: requestCount }, () => {
    const { name } = pick(random, chosen);
    const headerCount = pick(random, [0, 0, headersMax]);
    return { ...plainRequest, headerCount, [name]: pick(random, odd[name]) };
  });
}

/** Sends a request on a connection of its own. @returns its status; 0 where there was none */
function send(
  port: number,
  request: RawRequest,
  moreLines: readonly string[] = [],
): Promise<number> {
  const { method, path, host, user, session, headerCount } = request;
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    const chunks: Buffer[] = [];
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("error", () => {});
    socket.once("close", () => {
      const [, status] = /^HTTP\/1.1 (\d+)/.exec(Buffer.concat(chunks).toString("latin1")) ?? [];
      resolve(Number(status ?? 0));
    });
    const lines: readonly (readonly (Buffer | string)[])[] = [
      [method, " ", path, " HTTP/1.1"],
      ["host: ", host],
      ["x-user: ", user],
      ["cookie: ", session],
      ...Array.from({ length: headerCount }, (_, i) => [`x-more-${i}: ${i}`]),
      ["connection: close"],
      ...moreLines.map((line) => [line]),
      [],
    ];
    const bytes = lines.flatMap((line) => [...line, "\r\n"].map((part) => Buffer.from(part)));
    socket.write(Buffer.concat(bytes));
  });
}

/** Of an Envoy that repeats its callers' trace contexts, as `tracing` of its connection manager. */
const tracing = `tracing: ${JSON.stringify({
  random_sampling: { value: 0 },
  provider: {
    name: "envoy.tracers.opentelemetry",
    typed_config: {
      "@type": "type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig",
      grpc_service: { envoy_grpc: { cluster_name: "orders" } },
      service_name: "edge",
    },
  },
})}`;

/** What the listener has beside its limits. */
interface ProxyOptions {
  readonly listener?: Readonly<Record<string, string | number>>;
}

/** Headgate and a proxy of one policy, which traces. */
async function startProxy(inExtProc: string, { listener = {} }: ProxyOptions = {}): Promise<Envoy> {
  const upstream = await startScriptedUpstream(stage);
  const headgate = await HostedHeadgate.prepare(stage, { policy: "" });
  const { envoy, policy } = await startGeneratedEnvoy(stage, {
    more: limits,
    services: servicesAt(upstream.port, inExtProc),
    proxies: `headgate: {address: 127.0.0.1, port: ${headgate.grpcPort}, rateLimitTimeout: 10s}`,
    listener,
    edit: (text) =>
      text
        // What comes too late on a busy machine would be counted as an error.
        .replaceAll(/\bmessage_timeout: [\d.]+s/g, "message_timeout: 10s")
        .replace(/^( *)(?=http_filters:$)/m, `$1${tracing}\n$1`),
  });
  await writeFile(headgate.policyPath, policy);
  await headgate.restart();
  const first = { ...plainRequest, user: Buffer.from("first") };
  await waitFor("limits hold", async () => (await send(envoy.port, first)) === 429);
  return envoy;
}

const ways = [
  { way: "the rate-limit filter", more: "", errors: "cluster.orders.ratelimit.headgate.error" },
  {
    way: "ext_proc",
    more: "inExtProc: true",
    errors: "http.ingress.ext_proc.headgate.failure_mode_allowed",
  },
] as const;

describe("200 hostile requests through a generated proxy", () => {
  it.each(ways)(
    `pass no limit of their sender's, by $way (${seedsFirstName}=${seed})`,
    async (row) => {
      const envoy = await startProxy(row.more);
      const errorsBefore = await envoy.stat(row.errors);
      const passed = new Map<string, number>();
      const counts = { passed: 0, refused: 0, other: 0 };
      const requests = [...hostileRequests(new FakeRandom(seed))];
      const sendAll = async (): Promise<void> => {
        for (let request = requests.pop(); request !== undefined; request = requests.pop()) {
          const status = await send(envoy.port, request);
          if (status === 429) counts.refused += 1;
          else if (status !== 200) counts.other += 1;
          else {
            counts.passed += 1;
            for (const value of oddValuesOf(request))
              passed.set(value, (passed.get(value) ?? 0) + 1);
          }
        }
      };
      // Envoy takes a second to close the connections of those that it refuses itself.
      await Promise.all(Array.from({ length: 10 }, sendAll));
      expect(await envoy.stat(row.errors)).toBe(errorsBefore);
      expect(Math.max(...passed.values())).toBe(valueHits);
      expect([...passed.keys()].some((value) => value.length > longest)).toBe(true);
      expect(counts.passed).toBeLessThanOrEqual(addressHits);
      expect(counts.passed).toBeGreaterThan(requestCount / 10);
      expect(counts.refused).toBeGreaterThan(requestCount / 4);
    },
  );
});

describe("a request", () => {
  // Envoy repeats it in its calls of Headgate, which refused their streams.
  it.each(ways)("passes no limit by a long trace context, by $way", async ({ more, errors }) => {
    const envoy = await startProxy(more);
    const errorsBefore = await envoy.stat(errors);
    for (const length of [17_000, 58_000]) {
      const lines = [
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
        `tracestate: a=${"x".repeat(length)}`,
      ];
      const request = { ...plainRequest, user: Buffer.from(`of ${length}`) };
      const statuses: number[] = [];
      for (let i = 0; i <= valueHits; i += 1) {
        statuses.push(await send(envoy.port, request, lines));
      }
      expect(statuses.indexOf(429)).toBe(valueHits);
    }
    expect(await envoy.stat(errors)).toBe(errorsBefore);
  });

  // It was an error of ext_proc.
  it.each(ways)("is refused where it is larger than is read, by $way", async (row) => {
    const envoy = await startProxy(row.more, { listener: { maxRequestHeadersKb: 400 } });
    const sent = "cluster.orders.upstream_rq_total";
    const before = [await envoy.stat(row.errors), await envoy.stat(sent)];
    const request = { ...plainRequest, user: Buffer.alloc(300_000, "x") };
    expect(await send(envoy.port, request)).toBe(row.more === "" ? 429 : 431);
    expect([await envoy.stat(row.errors), await envoy.stat(sent)]).toEqual(before);
  });
});

/** What of a request is not plain, by name. */
function oddValuesOf(request: RawRequest): readonly string[] {
  return chosen
    .filter(({ name }) => !request[name].equals(plainRequest[name]))
    .map(({ name }) => `${name} ${request[name].toString("latin1")}`);
}
