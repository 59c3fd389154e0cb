import type { ClientHttp2Session } from "node:http2";
import { deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { createHealthService, Health, healthRequestBytesMax } from "../../src/rpc/grpc/health.js";
import { messageBytesMax } from "../../src/wire/grpc/service.js";
import { framed } from "../support/recorded-stream.js";
import {
  askPath,
  echo,
  grpcStatusOf,
  openRaw,
  type PortName,
  portNames,
  sendRaw,
  startTransport,
  useTransports,
} from "../support/transports.js";
import { waitFor } from "../support/wait.js";

const transports = useTransports();

async function open(name: PortName, method = echo): Promise<ClientHttp2Session> {
  return (await transports.openRaw(await transports.start(name, method))).session;
}

const question = framed("question");

/** Requests that are answered by the protocol; both transports answer alike. */
const sameAnswers: readonly {
  readonly what: string;
  readonly parts: readonly Uint8Array[];
  readonly fields?: Readonly<Record<string, string>>;
  readonly status: number;
}[] = [
  { what: "one frame", parts: [question], status: 0 },
  { what: "an empty message", parts: [framed("")], status: 0 },
  { what: "its head apart", parts: [question.subarray(0, 5), question.subarray(5)], status: 0 },
  { what: "a cut head", parts: [question.subarray(0, 2), question.subarray(2)], status: 0 },
  { what: "type +proto", parts: [question], fields: type("application/grpc+proto"), status: 0 },
  { what: "no message", parts: [], status: 12 },
  { what: "half a message", parts: [question.subarray(0, 7)], status: 12 },
  { what: "two messages", parts: [Buffer.concat([question, question])], status: 12 },
  { what: "a second one later", parts: [question, question], status: 12 },
  { what: "an unknown path", parts: [question], fields: { ":path": "/a.B/C" }, status: 12 },
  { what: "no path of gRPC", parts: [question], fields: { ":path": "/" }, status: 12 },
  { what: "a strange timeout", parts: [question], fields: { "grpc-timeout": "soon" }, status: 13 },
  { what: "a timeout", parts: [question], fields: { "grpc-timeout": "10S" }, status: 0 },
  {
    what: "a message too large by its head",
    parts: [Buffer.from([0, 0xff, 0xff, 0xff, 0xff])],
    status: 8,
  },
  { what: "gzip", parts: [framed(gzipSync("question"), 1)], fields: encoding("gzip"), status: 12 },
  {
    what: "deflate",
    parts: [framed(deflateSync("question"), 1)],
    fields: encoding("deflate"),
    status: 12,
  },
  { what: "gzip unused", parts: [question], fields: encoding("gzip"), status: 0 },
  { what: "another encoding", parts: [framed("a", 1)], fields: encoding("br"), status: 12 },
  { what: "another, unused", parts: [question], fields: encoding("br"), status: 0 },
  { what: "no gzip", parts: [framed("a", 1)], fields: encoding("gzip"), status: 12 },
  { what: "compression without a name", parts: [framed("a", 1)], status: 13 },
  {
    what: "compression by the name of none",
    parts: [framed("a", 1)],
    fields: encoding("identity"),
    status: 13,
  },
  {
    what: "a gzip bomb",
    parts: [framed(gzipSync(Buffer.alloc(64 * messageBytesMax)), 1)],
    fields: encoding("gzip"),
    status: 12,
  },
  { what: "a strange head", parts: [framed("a", 7)], status: 13 },
];

/** What libraries let pass, and we do not; no proxy of ours sends any of it. */
const stricterAnswers: readonly {
  readonly what: string;
  readonly parts: readonly Uint8Array[];
  readonly fields?: Readonly<Record<string, string>>;
  /** HTTP's status, or gRPC's where there is one. */
  readonly status: number;
  readonly reason: string;
}[] = [
  {
    what: "another method",
    parts: [question],
    fields: { ":method": "PUT" },
    status: 405,
    reason: "gRPC is POST",
  },
  {
    what: "gRPC-Web",
    parts: [question],
    fields: type("application/grpc-web"),
    status: 415,
    reason: "a type that begins like that of gRPC is another",
  },
  {
    what: "a timeout with words around it",
    parts: [question],
    fields: { "grpc-timeout": "x10S" },
    status: 13,
    reason: "it is none, though a part of it is",
  },
  {
    what: "a part of a second message",
    parts: [Buffer.concat([question, Buffer.from([0, 0])])],
    status: 12,
    reason: "a cut request is not answered as if it were whole",
  },
];

function type(contentType: string): Readonly<Record<string, string>> {
  return { "content-type": contentType };
}

function encoding(name: string): Readonly<Record<string, string>> {
  return { "grpc-encoding": name };
}

describe.each(portNames)("%s", (name) => {
  it.each(sameAnswers)("answers $status to $what", async ({ parts, fields, status }) => {
    const session = await open(name);
    const answer = await sendRaw(session, parts, fields);
    expect(grpcStatusOf(answer)).toBe(status);
    expect(answer.headers).toMatchObject({
      ":status": 200,
      "content-type": "application/grpc+proto",
    });
    // A failure before any answer is one block.
    expect(answer.trailers === undefined).toBe(status !== 0);
    if (status === 0) expect(["question", ""]).toContain(answer.body.subarray(5).toString());
    // The connection lives, whatever it was.
    expect(grpcStatusOf(await sendRaw(session, [question]))).toBe(0);
  });

  // 30 messages of a kilobyte each, compressed by a thousand, stopped all decisions for 10 s.
  it("reads nothing that is compressed, and says so", async () => {
    const session = await open(name);
    const { headers } = await sendRaw(session, [framed(gzipSync("a"), 1)], encoding("gzip"));
    expect(headers).toMatchObject({ "grpc-status": "12", "grpc-accept-encoding": "identity" });
  });

  it.each(stricterAnswers)("answers as it should to $what", async ({ parts, fields, status }) => {
    const session = await open(name);
    const answer = await sendRaw(session, parts, fields);
    expect(grpcStatusOf(answer) ?? answer.headers[":status"]).toBe(status);
    expect(grpcStatusOf(await sendRaw(session, [question]))).toBe(0);
  });

  it.each(["text/plain", "application/json"])("answers HTTP's 415 to %s", async (contentType) => {
    const session = await open(name);
    const answer = await sendRaw(session, [question], type(contentType));
    expect(answer.headers[":status"]).toBe(415);
    expect(grpcStatusOf(await sendRaw(session, [question]))).toBe(0);
  });

  it("answers a body that is cut at any byte", async () => {
    const session = await open(name);
    for (let cut = 0; cut <= question.length; cut += 1) {
      const answer = await sendRaw(session, [question.subarray(0, cut), question.subarray(cut)]);
      expect([answer.body, grpcStatusOf(answer)]).toEqual([question, 0]);
    }
  });

  it("sends a message of its callers' tongue with percent signs", async () => {
    const session = await open(name, {
      kind: "unary",
      name: "Ask",
      handle: () => {
        throw new Error("hunter2");
      },
    });
    const { headers } = await sendRaw(session, [question]);
    expect(headers["grpc-status"]).toBe("13");
    expect(decodeURIComponent(String(headers["grpc-message"]))).not.toContain("hunter2");
  });

  it("serves health as load balancers and probes ask for it", async () => {
    const health = new Health();
    const running = await startTransport(name, [createHealthService(health)]);
    transports.atEnd(() => running.close());
    const { session } = await openRaw(running);
    transports.atEnd(() => session.destroy());
    const path = "/grpc.health.v1.Health/Check";
    const check = async () => sendRaw(session, [framed("")], { ":path": path });
    expect((await check()).body).toEqual(framed(Buffer.from([8, 2])));
    const [largest, larger] = [0, 1].map((more) =>
      framed(Buffer.alloc(healthRequestBytesMax + more)),
    );
    for (const [message, status] of [
      [largest, 3],
      [larger, 8],
    ] as const) {
      const answer = await sendRaw(session, [message ?? framed("")], { ":path": path });
      expect(grpcStatusOf(answer)).toBe(status);
    }
    health.serve();
    expect((await check()).body).toEqual(framed(Buffer.from([8, 1])));
    const unknown = framed(Buffer.from([10, 1, 97]));
    expect(grpcStatusOf(await sendRaw(session, [unknown], { ":path": path }))).toBe(5);

    const watch = session.request({
      ":method": "POST",
      ":path": "/grpc.health.v1.Health/Watch",
      "content-type": "application/grpc",
      te: "trailers",
    });
    watch.on("error", () => {});
    const seen: Buffer[] = [];
    watch.on("data", (bytes: Buffer) => seen.push(bytes));
    watch.end(framed(""));
    const reported = () => Buffer.concat(seen).toString("hex");
    const serving = framed(Buffer.from([8, 1])).toString("hex");
    const notServing = framed(Buffer.from([8, 2])).toString("hex");
    await waitFor("the first status comes", () => reported() === serving);
    health.stopServing();
    await waitFor("the change comes", () => reported() === serving + notServing);
    watch.close(8);
    expect(grpcStatusOf(await check())).toBe(0);
  });

  it("answers 2,000 calls on one connection, with any sizes, each with its own bytes", async () => {
    const session = await open(name);
    const sizes = Array.from({ length: 2_000 }, (_, i) => (i * 7_919) % 40_000);
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let size = sizes[next++]; size !== undefined; size = sizes[next++]) {
        const body = framed(Buffer.alloc(size, String(size)));
        const answer = await sendRaw(session, [body], { ":path": askPath });
        expect(answer.body.equals(body)).toBe(true);
        expect(grpcStatusOf(answer)).toBe(0);
      }
    };
    await Promise.all(Array.from({ length: 50 }, worker));
  });
});
