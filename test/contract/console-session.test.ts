import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { linesPerMinuteMax } from "../../src/app/access/admin-call-log.js";
import { signInBytesMax } from "../../src/app/console/console.js";
import { startAdminApp } from "../support/admin.js";
import { browserProtocols, ConsoleBrowser, ownPage } from "../support/console-browser.js";
import { redisEnv, startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - {domain: shop, descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 2}}]}
    - {domain: pay, descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 2}}]}
`;

const operatorToken = "0123456789abcdef-of-ann";
const readerToken = "0123456789abcdef-of-bob";
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

async function start(env: Record<string, string> = {}) {
  const access = join(stage.folder, "access");
  const lines = [
    `operator * token-sha256:${sha256(operatorToken)} ann`,
    `reader shop token-sha256:${sha256(readerToken)} bob`,
  ];
  await writeFile(access, lines.join("\n"));
  const app = await startAdminApp(stage, policy, { HEADGATE_ADMIN_ACCESS: access, ...env });
  return { ...app, access };
}

const listRules = "LimitService/ListRules";
const freeze = {
  override: {
    domain: "shop",
    entries: [{ key: "user", value: "7" }],
    isFrozen: true,
    reason: "abuse",
  },
};

/** The value that calls of a session say. */
async function csrfOf(browser: ConsoleBrowser): Promise<{ readonly "x-headgate-csrf": string }> {
  const { body } = await browser.send({ path: "/console/session" });
  const { csrf } = JSON.parse(body);
  return { "x-headgate-csrf": csrf };
}

describe.each(browserProtocols)("a session over %s", (protocol) => {
  it("is for whom signed in, and for what is theirs", async () => {
    const { port } = await start();
    const browser = new ConsoleBrowser(stage, port, protocol);
    const nobody = await browser.send({ path: "/console/session" });
    expect([nobody.status, JSON.parse(nobody.body)]).toEqual([401, { signIn: ["token"] }]);
    const signedIn = await browser.signIn(readerToken);
    expect(String(signedIn.headers["set-cookie"])).toMatch(
      /^headgate_session=[\w-]+; Path=\/; Max-Age=28800; HttpOnly; SameSite=Strict$/,
    );
    expect(JSON.parse(signedIn.body)).toMatchObject({
      name: "bob",
      role: "reader",
      domains: ["shop"],
      operatorDomains: [],
      mode: "full",
      signIn: ["token"],
    });
    const csrf = await csrfOf(browser);
    const rules = await browser.call(listRules, {}, csrf);
    expect(JSON.parse(rules.body).rules).toMatchObject([{ domain: "shop" }]);
    expect((await browser.call(listRules, { domain: "pay" }, csrf)).status).toBe(403);
    expect((await browser.call("LimitService/SetOverride", freeze, csrf)).status).toBe(403);
    await browser.send({ path: "/console/session", method: "DELETE", headers: ownPage });
    expect(browser.cookies.size).toBe(0);
  });

  it("has a call refused that its own page has not made", async () => {
    const { port, events } = await start();
    const browser = new ConsoleBrowser(stage, port, protocol);
    await browser.signIn(operatorToken);
    const stale = await csrfOf(browser);
    await browser.signIn(operatorToken);
    const csrf = await csrfOf(browser);
    const statusOf = async (headers: Readonly<Record<string, string>>) =>
      (await browser.call(listRules, {}, headers)).status;
    expect(await statusOf(csrf)).toBe(200);
    expect(await statusOf({})).toBe(403);
    expect((await browser.call(listRules, {}, {})).body).toContain("reload the console");
    expect(await statusOf(stale)).toBe(403);
    expect(await statusOf({ "x-headgate-csrf": "" })).toBe(403);
    for (const site of ["cross-site", "same-site", "none", "SAME-ORIGIN"]) {
      expect(await statusOf({ ...csrf, "sec-fetch-site": site })).toBe(403);
    }
    for (const origin of ["https://evil.example", "null", `${browser.origin}0`]) {
      expect(await statusOf({ ...csrf, origin })).toBe(403);
    }
    expect(await statusOf({ ...csrf, origin: browser.origin })).toBe(200);
    const refused = events.filter(({ event }) => event === "adminCallRefused");
    expect(refused).toContainEqual(expect.objectContaining({ code: "permission_denied" }));
    expect(JSON.stringify(events)).not.toContain(csrf["x-headgate-csrf"]);
  });

  it("sees what it has changed, although polls are answered together", async () => {
    const { port } = await start();
    const browser = new ConsoleBrowser(stage, port, protocol);
    await browser.signIn(operatorToken);
    const csrf = await csrfOf(browser);
    const list = () => browser.call("FleetService/ListAudit", {}, csrf);
    expect(JSON.parse((await list()).body)).toEqual({});
    expect((await browser.call("LimitService/SetOverride", freeze, csrf)).status).toBe(200);
    expect((await list()).body).toContain("abuse");
  });

  it("is nobody's by a cookie that was not made here", async () => {
    const { port } = await start();
    const { port: elsewhere } = await start();
    const other = new ConsoleBrowser(stage, elsewhere, protocol);
    await other.signIn(operatorToken);
    const [sealed = ""] = other.cookies.values();
    const flipped = `${sealed.slice(0, 20)}${sealed[20] === "A" ? "B" : "A"}${sealed.slice(21)}`;
    const browser = new ConsoleBrowser(stage, port, protocol);
    const own = await browser.signIn(operatorToken);
    const csrf = await csrfOf(browser);
    expect(own.status).toBe(200);
    for (const cookie of [
      sealed,
      flipped,
      sealed.slice(0, 40),
      "x",
      "",
      "%00",
      "A".repeat(9_000),
    ]) {
      const answer = await browser.call(
        listRules,
        {},
        {
          ...csrf,
          cookie: `headgate_session=${cookie}`,
        },
      );
      expect(answer.status).toBe(401);
    }
  });

  it("ends with the grant it stands for, and when it is signed out", async () => {
    const { port, access } = await start();
    const browser = new ConsoleBrowser(stage, port, protocol);
    await browser.signIn(readerToken);
    const csrf = await csrfOf(browser);
    const cookie = `headgate_session=${browser.cookies.get("headgate_session")}`;
    await browser.send({ path: "/console/session", method: "DELETE", headers: ownPage });
    expect((await browser.call(listRules, {}, { ...csrf, cookie })).status).toBe(401);
    await browser.signIn(readerToken);
    const again = await csrfOf(browser);
    expect((await browser.call(listRules, {}, again)).status).toBe(200);
    await writeFile(access, `operator * token-sha256:${sha256(operatorToken)} ann\n`);
    await waitFor("the token to be nobody's", async () => {
      return (await browser.call(listRules, {}, again)).status === 401;
    });
  });

  it("changes nothing where the console is read-only, and programs do", async () => {
    const { port } = await start({ HEADGATE_CONSOLE: "read-only" });
    const browser = new ConsoleBrowser(stage, port, protocol);
    const { body } = await browser.signIn(operatorToken);
    expect(JSON.parse(body)).toMatchObject({ role: "operator", mode: "read-only" });
    const csrf = await csrfOf(browser);
    expect((await browser.call(listRules, {}, csrf)).status).toBe(200);
    const refused = await browser.call("LimitService/SetOverride", freeze, csrf);
    expect([refused.status, JSON.parse(refused.body).message]).toEqual([
      403,
      "the console is read-only (HEADGATE_CONSOLE)",
    ]);
    const program = new ConsoleBrowser(stage, port, protocol);
    const answer = await program.send({
      path: "/headgate.admin.v1.LimitService/SetOverride",
      method: "POST",
      headers: { authorization: `Bearer ${operatorToken}`, "content-type": "application/json" },
      body: JSON.stringify(freeze),
    });
    expect(answer.status).toBe(200);
  });
});

describe("signing in", () => {
  it.each([
    ["a token that nobody has", ownPage, JSON.stringify({ token: "guess" }), 401],
    ["a page of another site", { ...ownPage, "sec-fetch-site": "cross-site" }, "{}", 403],
    ["no page at all", { "content-type": "application/json" }, "{}", 403],
    ["another origin", { ...ownPage, origin: "http://evil.example" }, "{}", 403],
    ["a form", { ...ownPage, "content-type": "application/x-www-form-urlencoded" }, "a=b", 415],
    ["what is no JSON", ownPage, "{", 400],
    ["a list", ownPage, "[]", 400],
    ["a token that is none", ownPage, '{"token": 7}', 400],
    ["more than a token", ownPage, `{"token": "${"a".repeat(signInBytesMax)}"}`, 413],
  ])("is refused to %s", async (_name, headers, body, status) => {
    const { port } = await start();
    const browser = new ConsoleBrowser(stage, port);
    const path = "/console/session";
    const answer = await browser.send({ path, method: "POST", headers, body });
    expect(answer.status).toBe(status);
    expect(browser.cookies.size).toBe(0);
  });

  it("is logged within a bound, and no token is in the log", async () => {
    const { port, events } = await start();
    const browser = new ConsoleBrowser(stage, port);
    for (let i = 0; i < 2 * linesPerMinuteMax; i += 1) await browser.signIn(`guess-number-${i}`);
    await browser.signIn(operatorToken);
    const refused = events.filter(({ event }) => event === "adminCallRefused");
    expect(refused).toEqual([
      {
        event: "adminCallRefused",
        method: "SignIn",
        caller: undefined,
        address: "127.0.0.1",
        code: "unauthenticated",
      },
    ]);
    const signedIn = events.filter(({ event }) => event === "consoleSignedIn");
    expect(signedIn).toMatchObject([{ caller: "ann", address: "127.0.0.1" }]);
    expect(JSON.stringify(events)).not.toContain("guess-number");
    expect(JSON.stringify(events)).not.toContain(operatorToken);
  });

  it("holds for all replicas that have one key, and ends on all of them", async () => {
    const redis = await startRedis(stage);
    const key = "one key of both replicas, 32 long";
    const env = { ...redisEnv(redis.port), HEADGATE_CONSOLE_KEY: key };
    const browsers = [await start(env), await start(env)].map(({ port }) => {
      return new ConsoleBrowser(stage, port);
    });
    const [here, there] = browsers as [ConsoleBrowser, ConsoleBrowser];
    const path = "/console/session";
    const begin = async (): Promise<{ readonly cookie: string }> => {
      await here.signIn(operatorToken);
      const cookie = `headgate_session=${here.cookies.get("headgate_session")}`;
      const told = await there.send({ path, headers: { cookie } });
      expect(JSON.parse(told.body)).toMatchObject({ name: "ann" });
      return { cookie };
    };
    const end = async (): Promise<unknown> => {
      const { body } = await here.send({ path, method: "DELETE", headers: ownPage });
      return JSON.parse(body);
    };
    const statusOf = async (browser: ConsoleBrowser, headers: { readonly cookie: string }) =>
      (await browser.send({ path, headers })).status;
    const first = await begin();
    const kept = await begin();
    // The second one is of a browser that goes on.
    here.cookies.set("headgate_session", first.cookie.replace("headgate_session=", ""));
    expect(await end()).toEqual({ isEverywhere: true });
    await waitFor("the other replica knows", async () => (await statusOf(there, first)) === 401);
    expect(await statusOf(there, kept)).toBe(200);

    const last = await begin();
    await redis.kill();
    expect(await end()).toEqual({ isEverywhere: false });
    expect(await statusOf(here, last)).toBe(401);
    expect(await statusOf(there, last)).toBe(200);
    await redis.restart();
    await waitFor("it learns later", async () => (await statusOf(there, last)) === 401, {
      withinMs: 30_000,
    });
  });
});

describe("the console's answers", () => {
  const paths = [
    "/",
    "/console/session",
    "/console/../session",
    "/../../etc/passwd",
    "/assets/..%2f..%2fpackage.json",
    "/assets/%2e%2e/%2e%2e/package.json",
    "//evil.example/",
    "/assets/\\..\\..\\package.json",
  ];

  it.each(browserProtocols)("let nobody frame, sniff or read them, over %s", async (protocol) => {
    const { port } = await start();
    const browser = new ConsoleBrowser(stage, port, protocol);
    for (const path of paths) {
      const answer = await browser.send({ path });
      expect(answer.body).not.toMatch(/root:|"devDependencies"/);
      if (answer.status === 501) continue;
      expect(answer.headers["content-security-policy"]).toMatch(
        /default-src 'none';.* worker-src 'self';.* frame-ancestors 'none'/,
      );
      expect(answer.headers["content-security-policy"]).not.toMatch(/unsafe|\*/);
      expect(answer.headers).toMatchObject({
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
      });
      expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
    }
  });

  it("are none where there is no console", async () => {
    const { port } = await start({ HEADGATE_CONSOLE: "off" });
    const browser = new ConsoleBrowser(stage, port);
    for (const path of ["/", "/console/session"]) {
      expect((await browser.send({ path })).status).toBe(501);
    }
    expect((await browser.signIn(operatorToken)).status).toBe(501);
  });

  it("are for names of this machine alone where everybody on it is known", async () => {
    const { port } = await startAdminApp(stage, policy, { HEADGATE_ADMIN_OPEN: "true" });
    const browser = new ConsoleBrowser(stage, port);
    const told = await browser.send({ path: "/console/session" });
    expect(JSON.parse(told.body)).toMatchObject({ name: "local", role: "operator", csrf: "" });
    expect((await browser.call(listRules, {})).status).toBe(200);
    const host = "headgate.evil.example";
    const rebound = await browser.send({ path: "/console/session", headers: { host } });
    expect(rebound.status).toBe(403);
    for (const site of ["cross-site", "same-site"]) {
      const answer = await browser.call(listRules, {}, { "sec-fetch-site": site });
      expect(answer.status).toBe(403);
    }
    expect((await browser.signIn("whatever")).status).toBe(401);
  });

  it("are not waited for: who sends a body byte by byte is cut off", async () => {
    const { port } = await start();
    const socket = connect(port, "127.0.0.1");
    stage.atEnd(() => socket.destroy());
    const answered = new Promise<string>((resolve) => {
      socket.once("data", (chunk: Buffer) => resolve(chunk.toString("latin1")));
    });
    const head = ["POST /console/session HTTP/1.1", "host: 127.0.0.1", "content-length: 100"];
    const own = ["content-type: application/json", "sec-fetch-site: same-origin"];
    socket.write(`${[...head, ...own].join("\r\n")}\r\n\r\n{`);
    expect(await answered).toMatch(/^HTTP\/1.1 408 /);
  });
});
