import { createHash } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { callsAtOnceMax } from "../../src/app/admin/admin-requests.js";
import { tailRingCharsMax } from "../../src/decide/inspect/decision-tail.js";
import { adminClients, startAdminApp } from "../support/admin.js";
import { HttpClient } from "../support/http-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - {domain: shop, descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 9}}]}
`;

const valueChars = 2_000;
/** They take longer than the half a second in which the tail sends one message. */
const callCount = 400;
const descriptorsPerCall = 20;

const slowToken = "0123456789abcdef-of-who-reads-nothing";
const otherToken = "0123456789abcdef-of-somebody-else";

/** What lies between the ring and a reader: windows and buffers of HTTP/2, and one message. */
const betweenChars = 524_288;

/**
 * Follows the tail by a bare stream, and reads nothing of it: a client's library would read on by
 * itself, and keep what comes.
 */
async function follow(port: number): Promise<ClientHttp2Stream> {
  const session = connect(`http://127.0.0.1:${port}`);
  stage.atEnd(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": "/headgate.admin.v1.LimitService/TailDecisions",
    "content-type": "application/connect+json",
    "sec-fetch-site": "same-origin",
  });
  const wanted = Buffer.from(JSON.stringify({ sampleRatio: 1, perSecondMax: 1_000 }));
  // Connect's envelope: a byte of flags, and the length. Source: connectrpc.com, "Protocol".
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(wanted.length, 1);
  stream.end(Buffer.concat([prefix, wanted]));
  const [head] = await once(stream, "response");
  expect(head[":status"]).toBe(200);
  return stream.pause();
}

describe("a console that reads nothing", () => {
  it("keeps no more of the tail than a ring, and no decision waits for it", async () => {
    const { app, port } = await startAdminApp(stage, policy);
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const decide = async (call: string): Promise<number> => {
      const descriptors = Array.from({ length: descriptorsPerCall }, (_, i) => ({
        entries: [{ key: "user", value: `${call} ${i} `.padEnd(valueChars, "x") }],
      }));
      const body = JSON.stringify({ domain: "shop", descriptors });
      const answer = await http.send({ port: app.httpAddress?.port ?? 0, path: "/json", body });
      return answer.status;
    };
    const stream = await follow(port);
    for (let i = 0; i < callCount; i += 1) expect(await decide(`unread${i}`)).toBe(200);
    // Now it reads on: what was kept meanwhile comes first.
    let told = "";
    stream.on("data", (bytes: Buffer) => {
      told += bytes.toString();
    });
    stream.resume();
    await waitFor("it is told of what comes now", async () => {
      await decide("read");
      return told.includes('"read ');
    });
    const unreadChars = (told.match(/"unread/g) ?? []).length * valueChars;
    const droppedCounts = told.matchAll(/"droppedCount":"([0-9]+)"/g);
    const droppedCount = [...droppedCounts].reduce((sum, [, count]) => sum + Number(count), 0);
    expect(unreadChars).toBeGreaterThan(0);
    expect(unreadChars).toBeLessThan(tailRingCharsMax + betweenChars);
    expect(callCount * descriptorsPerCall * valueChars).toBeGreaterThan(4 * betweenChars);
    expect(droppedCount).toBeGreaterThan(0);
  });

  it("holds so many answers to polls, and neither decisions nor other callers wait", async () => {
    const access = join(stage.folder, "access");
    const hash = (token: string): string => createHash("sha256").update(token).digest("hex");
    const lines = [slowToken, otherToken].map((token, i) => {
      return `reader * token-sha256:${hash(token)} reader${i}`;
    });
    await writeFile(access, lines.join("\n"));
    const env = { HEADGATE_ADMIN_ACCESS: access, HEADGATE_ADMIN_CALLS_PER_SECOND: "1000" };
    const { app, port } = await startAdminApp(stage, policy, env);
    /** A connection whose server may send headers, and no byte of an answer. */
    const open = () => {
      const session = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 0 } });
      stage.atEnd(() => session.destroy());
      return session;
    };
    const poll = async (session: ClientHttp2Session, since: number): Promise<number> => {
      const stream = session.request({
        ":method": "POST",
        ":path": "/headgate.admin.v1.FleetService/GetHistory",
        "content-type": "application/json",
        "sec-fetch-site": "same-origin",
        authorization: `Bearer ${slowToken}`,
      });
      stream.on("error", () => {});
      // Each asks something else: no answer is another one's.
      stream.end(JSON.stringify({ since: new Date(since).toISOString() }));
      const [head] = await once(stream, "response");
      return head[":status"];
    };
    const sessions = [open(), open()];
    const statuses = await Promise.all(
      Array.from({ length: callsAtOnceMax }, (_, i) => poll(sessions[i % 2] ?? open(), 1_000 * i)),
    );
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(await poll(open(), 0)).toBe(429);
    const http = new HttpClient();
    stage.atEnd(() => http.close());
    const descriptors = [{ entries: [{ key: "user", value: "ann" }] }];
    const body = JSON.stringify({ domain: "shop", descriptors });
    const decided = await http.send({ port: app.httpAddress?.port ?? 0, path: "/json", body });
    expect(decided.status).toBe(200);
    const { fleet } = adminClients(port, { token: otherToken });
    expect((await fleet.getHistory({})).replicas).toHaveLength(1);
    // Who goes makes room.
    sessions[0]?.destroy();
    await waitFor("they may ask again", async () => (await poll(open(), 0)) === 200);
  });
});
