import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { ConsoleAssets } from "../../../../src/app/console/assets.js";
import { EndedSessions } from "../../../../src/app/console/ended-sessions.js";
import { Seal } from "../../../../src/app/console/seal.js";
import { Sessions } from "../../../../src/app/console/sessions.js";
import { recordsMax } from "../../../../src/store/coordination/record-store.js";
import { FakeClock } from "../../../support/fake-clock.js";
import { memoryRecords } from "../../../support/memory-records.js";

async function folderOf(files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "headgate-console-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "assets"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

const script = "console.log(1)";

const files = {
  "index.html": "<!doctype html>",
  "assets/app-1a2b.js": script,
  "assets/app-1a2b.js.br": brotliCompressSync(script),
  "assets/app-1a2b.js.gz": gzipSync(script),
  "assets/app-1a2b.js.map": "{}",
  "assets/data.unknown": "x",
};

describe("ConsoleAssets", () => {
  it("serves what was built as it was packed: hashed names for ever, the page anew", async () => {
    const assets = await ConsoleAssets.read(await folderOf(files));
    const path = "/assets/app-1a2b.js";
    const packed = assets?.answer(path, { "accept-encoding": "gzip, deflate, br;q=0.5" });
    expect(packed).toMatchObject({
      status: 200,
      headers: {
        "content-encoding": "br",
        "content-type": "text/javascript; charset=utf-8",
        "cache-control": "public, max-age=31536000, immutable",
        vary: "accept-encoding",
      },
      body: brotliCompressSync(script),
    });
    const zipped = assets?.answer(path, { "accept-encoding": "gzip, br;q=0" });
    expect(zipped?.headers["content-encoding"]).toBe("gzip");
    const plain = assets?.answer(path, {});
    expect(String(plain?.body)).toBe(script);
    expect(plain?.headers["content-encoding"]).toBeUndefined();
    const page = assets?.answer("/", {});
    expect(page?.headers["cache-control"]).toBe("no-cache");
    const known = assets?.answer("/", { "if-none-match": String(page?.headers["etag"]) });
    expect([known?.status, known?.body]).toEqual([304, ""]);
  });

  it("serves what is only there compressed, also to who names no encoding", async () => {
    const only = { "index.html": "", "assets/app-1a2b.js.gz": gzipSync(script) };
    const assets = await ConsoleAssets.read(await folderOf(only));
    for (const headers of [{}, { "accept-encoding": "br" }, { "accept-encoding": "gzip" }]) {
      expect(assets?.answer("/assets/app-1a2b.js", headers)).toMatchObject({
        headers: { "content-encoding": "gzip", "content-type": "text/javascript; charset=utf-8" },
        body: gzipSync(script),
      });
    }
    expect(assets?.answer("/assets/app-1a2b.js.gz", {})).toBeUndefined();
  });

  it("has no other path, whatever is asked for", async () => {
    const assets = await ConsoleAssets.read(await folderOf(files));
    for (const path of [
      "",
      "/assets",
      "/assets/",
      "/assets/app-1a2b.js.map",
      "/assets/app-1a2b.js.br",
      "/assets/data.unknown",
      "/assets/../index.html",
      "/../../../etc/passwd",
      "__proto__",
    ]) {
      expect(assets?.answer(path, {})).toBeUndefined();
    }
  });

  it("is none without a page, or with more than belongs there", async () => {
    expect(await ConsoleAssets.read(await folderOf({ "a.js": "" }))).toBeUndefined();
    const large = { ...files, "large.js": Buffer.alloc(9_000_000) };
    expect(await ConsoleAssets.read(await folderOf(large))).toBeUndefined();
  });
});

describe("Sessions", () => {
  const start = (isTls = false) => {
    const clock = new FakeClock();
    const seal = new Seal(undefined);
    const records = memoryRecords(clock);
    const ended = new EndedSessions({ clock, records });
    const host = undefined;
    const sessions = new Sessions({ seal, clock, sessionMs: 60_000, isTls, host, ended });
    const headersOf = (cookie = "") => ({ cookie: cookie.split(";")[0] ?? "" });
    return { clock, sessions, headersOf, seal, ended, records };
  };
  const identity = { kind: "token", sha256: "a".repeat(64) } as const;

  it("end after their time, or with the token they stand for", () => {
    const { clock, sessions, headersOf } = start();
    const headers = headersOf(sessions.begin(identity)?.cookie);
    expect(sessions.of(headers)?.identity).toEqual(identity);
    const untilEpochMs = clock.epochUs() / 1_000 + 5_000;
    const short = sessions.begin(identity, untilEpochMs);
    expect(short?.cookie).toContain("Max-Age=5;");
    clock.advance(5_000);
    expect(sessions.of(headersOf(short?.cookie))).toBeUndefined();
    expect(sessions.of(headers)).toBeDefined();
    clock.advance(55_000);
    expect(sessions.of(headers)).toBeUndefined();
  });

  it("are bound to the host by TLS", () => {
    const { sessions } = start(true);
    expect(sessions.begin(identity)?.cookie).toMatch(/^__Host-headgate_session=.*; Secure$/);
  });

  it("are not what was sealed for something else", () => {
    const { sessions, seal, headersOf } = start();
    const value = { id: "a".repeat(32), identity: { ...identity }, untilEpochMs: Number.MAX_VALUE };
    const other = `headgate_session=${seal.close("sign-in", value)}`;
    expect(sessions.of(headersOf(other))).toBeUndefined();
    expect(
      sessions.of(headersOf(`headgate_session=${seal.close("session", value)}`)),
    ).toBeDefined();
  });

  it("are not begun where no browser would keep them", () => {
    const groups = Array.from({ length: 300 }, (_, i) => `group number ${i}`);
    const claims = {
      kind: "claims",
      issuer: "https://id.example",
      subject: "ann",
      groups,
    } as const;
    expect(start().sessions.begin(claims)).toBeUndefined();
  });

  it("remember those that were signed out within a bound", async () => {
    const { clock, sessions, ended, records } = start();
    clock.advance(0);
    await records.known();
    const session = sessions.begin(identity)?.session;
    if (session === undefined) throw new Error("there is none");
    expect(await ended.end(session)).toBe(true);
    expect(sessions.isLive(session)).toBe(false);
    const another = (i: number) => ({ ...session, id: String(i).padStart(32, "0") });
    for (let i = 0; i < recordsMax.session; i += 1) await ended.end(another(i));
    expect(records.list("session").size).toBe(recordsMax.session);
    // The oldest one makes room.
    expect(sessions.isLive(another(0))).toBe(false);
    expect(sessions.isLive(session)).toBe(true);
    clock.advance(60_000);
    await ended.end({ ...session, untilEpochMs: clock.epochUs() / 1_000 + 1 });
    expect(records.list("session").size).toBe(recordsMax.session - 9);
  });
});
