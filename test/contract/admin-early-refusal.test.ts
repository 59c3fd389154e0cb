import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { restBytesMax } from "../../src/app/admin/early-answer.js";
import { adminMessageBytesMax, policyMessageBytesMax } from "../../src/rpc/admin/methods.js";
import { startAdminApp } from "../support/admin.js";
import { HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - {domain: shop, descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 2}}]}
`;

const token = "0123456789abcdef0123456789abcdef";
const listRules = "/headgate.admin.v1.LimitService/ListRules";
const applyPolicy = "/headgate.admin.v1.PolicyService/ApplyPolicy";

async function startPort(): Promise<number> {
  const list = join(stage.folder, "access");
  const hash = createHash("sha256").update(token).digest("hex");
  await writeFile(list, `operator * token-sha256:${hash} ann\n`);
  const { port } = await startAdminApp(stage, policy, { HEADGATE_ADMIN_ACCESS: list });
  return port;
}

interface Ask {
  readonly path: string;
  readonly bodyBytes: number;
  readonly token?: string;
}

/** The head of a request as HTTP/1.1 clients write it. */
function headOf({ path, bodyBytes, token: own }: Ask): string {
  const lines = [
    `POST ${path} HTTP/1.1`,
    "host: 127.0.0.1",
    "content-type: application/json",
    `content-length: ${bodyBytes}`,
    ...(own === undefined ? [] : [`authorization: Bearer ${own}`]),
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** A client that reads nothing before all of its body is written, as many libraries do. */
function writeThenRead(port: number, ask: Ask): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let text = "";
    stage.atEnd(() => {
      socket.destroy();
    });
    socket.once("error", reject);
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
    });
    socket.pause();
    socket.write(headOf(ask));
    socket.write(Buffer.alloc(ask.bodyBytes, "a"), () => socket.resume());
    socket.once("end", () => resolve(text));
  });
}

describe("a refusal before the body is read", () => {
  it.each([
    { name: "an unknown caller", path: applyPolicy, bodyBytes: 3_000_000, status: 401 },
    {
      name: "the largest policy",
      path: applyPolicy,
      bodyBytes: policyMessageBytesMax,
      status: 401,
    },
    { name: "no such method", path: "/nothing", bodyBytes: 1_000_000, status: 501 },
    { name: "no body at all", path: listRules, bodyBytes: 0, status: 401 },
  ])("reaches a client that writes all before it reads: $name", async ({ status, ...ask }) => {
    const text = await writeThenRead(await startPort(), ask);
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(text).toMatch(/\r\n\r\n\{"code":"[a-z_]+","message":"[^"]+"\}$/);
  });

  it("reaches a client that says all of a message that is too long", async () => {
    const ask = { path: listRules, bodyBytes: 4 * adminMessageBytesMax, token };
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const answer = await http.send({
      port: await startPort(),
      path: ask.path,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: "a".repeat(ask.bodyBytes),
    });
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([
      429,
      { code: "resource_exhausted" },
    ]);
  });

  it("is no reason to read for ever: what is longer than any message is cut", async () => {
    const bodyBytes = 8 * restBytesMax;
    const socket = connect(await startPort(), "127.0.0.1");
    socket.on("error", () => {});
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    const answered = new Promise<string>((resolve) => {
      socket.once("data", (chunk: Buffer) => resolve(chunk.toString("latin1")));
    });
    socket.write(headOf({ path: applyPolicy, bodyBytes }));
    // Whoever looks before it has written all is told at once.
    expect(await answered).toMatch(/^HTTP\/1.1 401 /);
    const chunk = Buffer.alloc(1_048_576, "a");
    let writtenBytes = 0;
    const write = (): void => {
      if (socket.destroyed || writtenBytes >= bodyBytes) return;
      writtenBytes += chunk.length;
      socket.write(chunk, write);
    };
    write();
    await closed;
    expect(writtenBytes).toBeGreaterThan(restBytesMax);
    expect(writtenBytes).toBeLessThan(bodyBytes);
  });
});
