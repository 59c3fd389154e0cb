import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { adminConnectionsMax } from "../../src/app/admin/admin-port.js";
import { longRequestsMax } from "../../src/app/admin/admin-requests.js";
import type { ExplainRequestSchema } from "../../src/gen/headgate/admin/v1/admin_pb.js";
import { adminMessageBytesMax } from "../../src/rpc/admin/methods.js";
import { suggestedIdsMax } from "../../src/rpc/admin/override-methods.js";
import { bodiesBytesMax } from "../../src/rpc/admin/request-body.js";
import { adminClients, startAdminApp } from "../support/admin.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - {domain: shop, descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 2}}]}
`;

/** Whoever looks often is not slowed down here. */
const fast = { HEADGATE_ADMIN_CALLS_PER_SECOND: "10000" };

async function failure(call: Promise<unknown>): Promise<ConnectError> {
  const thrown: unknown = await call.then(
    () => new Error("it was answered"),
    (error: unknown) => error,
  );
  if (!(thrown instanceof ConnectError)) throw thrown;
  return thrown;
}

/** A connection of a client that says nothing yet. */
async function openSocket(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  stage.atEnd(() => {
    socket.destroy();
  });
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** A request for an explanation, without the end of its body. */
async function beginExplanation(port: number): Promise<Socket> {
  const socket = await openSocket(port);
  const lines = [
    "POST /headgate.admin.v1.LimitService/Explain HTTP/1.1",
    "host: 127.0.0.1",
    "content-type: application/json",
    "content-length: 1000000",
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n{"candidate": [`);
  return socket;
}

const explanation: MessageInitShape<typeof ExplainRequestSchema> = {
  request: {
    case: "descriptors",
    value: { domain: "shop", descriptors: [{ entries: [{ key: "user", value: "7" }] }] },
  },
};

describe("calls with long messages", () => {
  it(`are taken ${longRequestsMax} at a time, and hold up no others`, async () => {
    const { port } = await startAdminApp(stage, policy, fast);
    const { limits } = adminClients(port);
    const begun: Socket[] = [];
    for (let i = 0; i < longRequestsMax; i += 1) begun.push(await beginExplanation(port));
    // A whole call later the port has them, so that no other one takes their places.
    expect((await limits.listRules({})).rules).toHaveLength(1);
    const refused = await waitFor("no other one is taken", () =>
      limits.explain(explanation).then(() => undefined, ConnectError.from),
    );
    expect([refused.code, refused.rawMessage]).toEqual([
      Code.ResourceExhausted,
      `${longRequestsMax} calls with policies are in progress; try again`,
    ]);
    expect((await limits.listRules({})).rules).toHaveLength(1);
    // One leaves in the middle of its message: beside the others there is room again.
    begun[0]?.destroy();
    await waitFor("one is taken", async () => (await limits.explain(explanation)).current);
  });
});

/** Framed as gRPC and gRPC-Web do. */
function framed(bytes: Buffer, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

describe("requests of very many fields", () => {
  const empty = Buffer.alloc(4_000_000, Buffer.of(0x1a, 0));
  const unknown = Buffer.alloc(3_999_999, Buffer.of(0xf8, 0x7f, 1));
  const json = Buffer.from(`{"candidate":[${"{},".repeat(170_000)}{}]}`);

  it.each([
    ["application/proto", empty],
    ["application/proto", unknown],
    ["application/json", json],
    ["application/grpc-web+proto", framed(empty)],
    ["application/grpc-web+json", framed(json)],
  ])("are refused before anything is made of them: %s", async (type, body) => {
    const { port } = await startAdminApp(stage, policy, fast);
    const url = `http://127.0.0.1:${port}/headgate.admin.v1.LimitService/Explain`;
    const headers = { "content-type": type };
    const answer = await fetch(url, { method: "POST", headers, body: new Uint8Array(body) });
    const text = `${await answer.text()} ${answer.headers.get("grpc-message")}`;
    expect(decodeURIComponent(text)).toContain("the request is too large: it has more than 16384");
  });

  it("are not taken compressed", async () => {
    const { port } = await startAdminApp(stage, policy, fast);
    const url = `http://127.0.0.1:${port}/headgate.admin.v1.LimitService/Explain`;
    const [whole, part] = [gzipSync(empty), framed(gzipSync(empty), 1)];
    for (const [type, name, body] of [
      ["application/proto", "content-encoding", whole],
      ["application/grpc-web+proto", "grpc-encoding", part],
    ] as const) {
      const headers = { "content-type": type, [name]: "gzip" };
      const answer = await fetch(url, { method: "POST", headers, body: new Uint8Array(body) });
      const text = `${await answer.text()} ${answer.headers.get("grpc-message")}`;
      expect(decodeURIComponent(text)).toContain("requests must be uncompressed");
    }
  });

  it("hold so many bytes while they are unfinished, and give them back", async () => {
    const { port, metrics } = await startAdminApp(stage, policy, fast);
    const begun: Socket[] = [];
    const head = [
      "POST /headgate.admin.v1.LimitService/ListRules HTTP/1.1",
      "host: 127.0.0.1",
      "content-type: application/json",
      `content-length: ${adminMessageBytesMax}`,
    ];
    let text = "";
    for (let i = 0; i * (adminMessageBytesMax - 1) < bodiesBytesMax; i += 1) {
      const socket = await openSocket(port);
      socket.on("data", (bytes) => {
        text += String(bytes);
      });
      socket.write(`${head.join("\r\n")}\r\n\r\n{${" ".repeat(adminMessageBytesMax - 2)}`);
      begun.push(socket);
    }
    await waitFor("one is too much", () => text.includes("too many requests are incomplete"));
    for (const socket of begun) socket.destroy();
    const { limits } = adminClients(port);
    await waitFor("there is room", () => limits.listRules({}).catch(() => undefined));
    expect(await metrics()).toMatch(/^headgate_internal_errors_total 0$/m);
  });
});

describe("connections of the admin port", () => {
  it(`are ${adminConnectionsMax} at most; one more is closed, and no other`, async () => {
    const { port } = await startAdminApp(stage, policy, fast);
    const sockets: Socket[] = [];
    for (let i = 0; i < adminConnectionsMax; i += 1) sockets.push(await openSocket(port));
    const more = await openSocket(port);
    more.resume();
    await once(more, "close");
    expect(sockets.filter((socket) => socket.closed || socket.readableEnded)).toEqual([]);
    const [first, last] = [sockets[0], sockets.at(-1)];
    // Those that are in are served.
    for (const socket of [first, last]) {
      socket?.write("GET /nothing HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    }
    for (const socket of [first, last]) {
      const [chunk] = socket === undefined ? [] : await once(socket, "data");
      expect(String(chunk)).toMatch(/^HTTP\/1.1 501 /);
    }
    first?.destroy();
    const { limits } = adminClients(port);
    await waitFor("there is room for one", async () => (await limits.listRules({})).rules[0]);
  });
});

describe("many calls at once", () => {
  it("are no leak that Node would warn of", async () => {
    const warnings: string[] = [];
    const note = ({ name }: Error): number => warnings.push(name);
    process.on("warning", note);
    stage.atEnd(() => {
      process.off("warning", note);
    });
    const { port } = await startAdminApp(stage, policy, fast);
    const { limits } = adminClients(port, { protocol: "grpc" });
    await Promise.all(
      Array.from({ length: 50 }, () => limits.explain(explanation).catch(() => {})),
    );
    await Promise.all(Array.from({ length: 50 }, () => limits.listRules({})));
    expect(warnings).toEqual([]);
  });
});

describe("the name of an override that is not there", () => {
  it(`is looked for among the first ${suggestedIdsMax}`, async () => {
    const { port } = await startAdminApp(stage, policy, {
      ...fast,
      HEADGATE_ADMIN_OPEN: "true",
    });
    const { limits } = adminClients(port, { protocol: "grpc" });
    const give = async (id: string): Promise<void> => {
      const entries = [{ key: "user", value: id }];
      const effect = { case: "multiplier", value: 2 } as const;
      await limits.setOverride({ override: { id, domain: "shop", entries, effect, reason: "x" } });
    };
    for (let i = 0; i < suggestedIdsMax - 1; i += 50) {
      const count = Math.min(50, suggestedIdsMax - 1 - i);
      await Promise.all(Array.from({ length: count }, (_, j) => give(`u-${i + j}`)));
    }
    await give("in-time-for-it");
    await give("came-too-late");
    const remove = async (id: string): Promise<string> => {
      const call = limits.deleteOverride({
        id,
        domain: "shop",
        expectedVersion: 1n,
        reason: "over",
      });
      return (await failure(call)).rawMessage;
    };
    expect(await remove("in-time-for-i")).toBe('unknown override; did you mean "in-time-for-it"?');
    expect(await remove("came-too-lat")).toBe("unknown override");
  });
});
