import { type ClientHttp2Session, connect } from "node:http2";
import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, it } from "vitest";
import { expectUnharmed, startClient } from "../support/fault-rig.js";
import { edgePolicy } from "../support/gateway.js";
import { HeadgateProcess } from "../support/headgate-process.js";
import { HttpClient } from "../support/http-client.js";
import { rawField, rawVarint } from "../support/raw-field.js";
import { framed } from "../support/recorded-stream.js";
import { outcomeOf, type RlsClient, rlsPath } from "../support/rls-client.js";
import { useStage } from "../support/stage.js";
import { Traffic } from "../support/traffic.js";
import { grpcStatusOf, sendRaw } from "../support/transports.js";
import { withheldTime } from "../support/withheld-time.js";

const policy = edgePolicy(`
  - key: other
    rate_limit: {unit: hour, requests_per_unit: 4294967295}
`);

/** Of a process that serves; at the chart's own heap it starts with some 90 MB. */
const residentBytesMax = 250 * 1_048_576;

const unimplemented = 12;

const controlBytesMax = 4_194_304;

const discoveryPath =
  "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
const runtimePath = "/envoy.service.runtime.v3.RuntimeDiscoveryService/StreamRuntime";
const loadPath = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";
const metricsPath = "/envoy.service.metrics.v3.MetricsService/StreamMetrics";
const quotaPath = "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas";

/** So many bytes of one empty field after the other. */
function emptyFields(number: number, byteCount: number): Buffer {
  const field = Buffer.concat([rawVarint(number * 8 + 2), Buffer.of(0)]);
  return Buffer.alloc(Math.floor(byteCount / field.length) * field.length, field);
}

/** A node of nothing but extensions. Source: envoy.config.core.v3.Node, extensions. */
const vastNode = rawField(
  10,
  Buffer.concat([rawField(10, Buffer.from("n")), emptyFields(9, 4_190_000)]),
);

interface Exploit {
  readonly what: string;
  readonly port: "grpc" | "control";
  readonly path: string;
  readonly message: Buffer;
  readonly count: number;
}

/** Each ended a process, or stopped it for seconds, when messages were decoded before all else. */
const exploits: readonly Exploit[] = [
  {
    what: "half a million empty descriptors",
    port: "grpc",
    path: rlsPath,
    message: Buffer.concat([rawField(10, Buffer.from("edge")), emptyFields(2, 1_048_000)]),
    count: 30,
  },
  {
    what: "a descriptor of as many empty entries",
    port: "grpc",
    path: rlsPath,
    message: Buffer.concat([
      rawField(10, Buffer.from("edge")),
      rawField(18, emptyFields(1, 1_048_000)),
    ]),
    count: 30,
  },
  {
    what: "a node of two million empty extensions, for runtime layers",
    port: "control",
    path: runtimePath,
    message: vastNode,
    count: 4,
  },
  {
    what: "the same for all resources",
    port: "control",
    path: discoveryPath,
    message: vastNode,
    count: 4,
  },
  {
    what: "the same with statistics",
    port: "control",
    path: metricsPath,
    message: rawField(10, vastNode),
    count: 4,
  },
  {
    what: "two million clusters of nothing",
    port: "control",
    path: loadPath,
    message: emptyFields(2, controlBytesMax),
    count: 4,
  },
  {
    what: "two million families of nothing",
    port: "control",
    path: metricsPath,
    message: emptyFields(2, controlBytesMax),
    count: 4,
  },
  {
    what: "two million quotas of nothing",
    port: "control",
    path: quotaPath,
    message: emptyFields(2, controlBytesMax),
    count: 4,
  },
];

/** Begins a request and leaves it; resolves when the part has left, or is not wanted. */
function sendPart(session: ClientHttp2Session, path: string, part: Buffer): Promise<void> {
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.on("error", () => {});
  stream.resume();
  return new Promise((resolve) => {
    stream.once("close", resolve);
    stream.write(part, () => resolve());
  });
}

describe("at a heap of 96 MB", () => {
  const stage = useStage("file");
  let headgate: HeadgateProcess;
  let client: RlsClient;

  beforeAll(async () => {
    headgate = await HeadgateProcess.start(stage, {
      policy,
      env: { NODE_OPTIONS: "--max-old-space-size=96" },
    });
    client = startClient(stage, headgate);
  });

  async function openSession(port: "grpc" | "control"): Promise<ClientHttp2Session> {
    const number = port === "grpc" ? headgate.grpcPort : headgate.portOf("control");
    // Its own bound would hold these messages back.
    const session = connect(`http://127.0.0.1:${number}`, { maxSessionMemory: 1_000 });
    session.on("error", () => {});
    stage.atEnd(() => session.destroy());
    await new Promise<void>((resolve) => session.once("remoteSettings", () => resolve()));
    return session;
  }

  /** Others are served meanwhile and afterwards, and the process holds no more than it may. */
  async function expectServed(attack: () => Promise<unknown>): Promise<void> {
    const call = async (): Promise<string> => {
      return outcomeOf(await client.ask({ descriptors: [["other=one"]], timeoutMs: 10_000 }));
    };
    const withheldMs = withheldTime(stage, headgate.process.pid);
    const others = Traffic.start(stage, { callersCount: 2, call, withheldMs });
    await attack();
    const { total, byOutcome } = await others.stop();
    expect(byOutcome).toEqual({ OK: total });
    await expectUnharmed(headgate);
    expect(await headgate.residentBytes()).toBeLessThan(residentBytesMax);
  }

  describe.each(exploits)("$what", ({ port, path, message, count }) => {
    const send = async (body: Buffer, fields = {}): Promise<readonly (number | undefined)[]> => {
      const session = await openSession(port);
      const calls = Array.from({ length: count }, () => {
        return sendRaw(session, [body], { ":path": path, ...fields });
      });
      const answers = await Promise.all(calls);
      session.destroy();
      return answers.map(grpcStatusOf);
    };

    it("harms nobody", async () => {
      await expectServed(() => send(framed(message)));
    });

    it("is refused where it is compressed", async () => {
      await expectServed(async () => {
        const statuses = await send(framed(gzipSync(message), 1), { "grpc-encoding": "gzip" });
        expect(new Set(statuses)).toEqual(new Set([unimplemented]));
      });
    });
  });

  // Each far more than there is room for, of which none is gRPC's error: a head promises the rest.
  it.each([
    ["grpc", rlsPath, 1, 900, framed(Buffer.alloc(262_144)).subarray(0, 250_000)],
    ["grpc", rlsPath, 30, 30, framed(Buffer.alloc(262_144)).subarray(0, 250_000)],
    ["control", discoveryPath, 1, 60, framed(Buffer.alloc(controlBytesMax)).subarray(0, 4_100_000)],
    // Whole, but for the end of the request.
    ["grpc", rlsPath, 1, 900, framed(Buffer.alloc(250_000))],
  ] as const)("half sent to the %s port, %s, on %i connections: harms nobody", async (...given) => {
    const [port, path, connectionCount, streamCount, part] = given;
    await expectServed(async () => {
      const opened = Array.from({ length: connectionCount }, () => openSession(port));
      const sessions = await Promise.all(opened);
      const sent = sessions.flatMap((session) => {
        return Array.from({ length: streamCount }, () => sendPart(session, path, part));
      });
      await Promise.all(sent);
      // What was sent is there when a later question on the same connections is answered.
      const question = framed(Buffer.alloc(0));
      const questions = sessions.map((session) => sendRaw(session, [question], { ":path": path }));
      await Promise.all(questions);
      expect(await headgate.residentBytes()).toBeLessThan(residentBytesMax);
      for (const session of sessions) session.destroy();
    });
  });

  it("a list of as many on POST /json harms nobody", async () => {
    await expectServed(async () => {
      const body = `{"domain":"edge","descriptors":[${"{},".repeat(340_000)}{}]}`;
      const http = new HttpClient();
      stage.atEnd(() => http.close());
      const asks = Array.from({ length: 30 }, async () => {
        const to = { port: headgate.httpPort, path: "/json", body };
        return http.send({ ...to, headers: { "content-type": "application/json" } }).then(
          ({ status }) => status,
          () => "cut",
        );
      });
      for (const status of await Promise.all(asks)) expect([413, "cut"]).toContain(status);
    });
  });
});
