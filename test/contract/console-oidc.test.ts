import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/app/config/config.js";
import { redeemingMax } from "../../src/app/console/oidc-sign-in.js";
import { startAdminApp } from "../support/admin.js";
import { ConsoleBrowser } from "../support/console-browser.js";
import { type SignInProvider, startSignInProvider } from "../support/sign-in-provider.js";
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

async function start(secret?: string, more: Record<string, string> = {}) {
  const provider = await startSignInProvider(stage, {
    clientId: "console",
    ...(secret === undefined ? {} : { secret }),
  });
  const access = join(stage.folder, "access");
  await writeFile(access, "operator shop subject:ann ann\nreader * group:engineers\n");
  const { port, events } = await startAdminApp(stage, policy, {
    HEADGATE_ADMIN_ACCESS: access,
    HEADGATE_ADMIN_OIDC_ISSUER: provider.issuer,
    HEADGATE_ADMIN_OIDC_AUDIENCE: "headgate",
    HEADGATE_ADMIN_OIDC_JWKS_URL: `${provider.issuer}/keys`,
    HEADGATE_CONSOLE_OIDC_CLIENT_ID: "console",
    ...(secret === undefined ? {} : { HEADGATE_CONSOLE_OIDC_CLIENT_SECRET: secret }),
    ...more,
  });
  return { provider, access, events, browser: new ConsoleBrowser(stage, port) };
}

/** Goes the way of a browser; answers where it ends. */
async function signIn(
  browser: ConsoleBrowser,
  provider: SignInProvider,
  { back = "/", change = (url: URL): URL => url } = {},
): Promise<string> {
  const path = `/console/oidc/start?back=${encodeURIComponent(back)}`;
  const begun = await browser.send({ path });
  expect(begun.status).toBe(303);
  const returned = change(await provider.visit(String(begun.headers["location"])));
  const ended = await browser.send({
    path: `${returned.pathname}${returned.search}`,
    headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" },
  });
  expect(ended.status).toBe(303);
  return String(ended.headers["location"]);
}

const session = { path: "/console/session" };

describe("signing in at an identity provider", () => {
  it.each([undefined, "a secret: of+the client/"])("works with the secret %s", async (secret) => {
    const { provider, browser } = await start(secret);
    provider.claims = { sub: "ann", groups: ["engineers", "others"] };
    expect(JSON.parse((await browser.send(session)).body)).toEqual({ signIn: ["token", "oidc"] });
    expect(await signIn(browser, provider, { back: "/#/rules?domain=shop" })).toBe(
      "/#/rules?domain=shop",
    );
    const told = JSON.parse((await browser.send(session)).body);
    expect(told).toMatchObject({ name: "ann", role: "operator", operatorDomains: ["shop"] });
    expect(told.domains).toBeNull();
    const csrf = { "x-headgate-csrf": told.csrf };
    expect((await browser.call("LimitService/ListRules", {}, csrf)).status).toBe(200);
    expect([...browser.cookies.keys()]).toEqual(["headgate_session"]);
  });

  it("calls who is in a group by a name of the token; the audit log has the subject", async () => {
    const { provider, browser } = await start();
    provider.claims = {
      sub: "8d1f",
      groups: ["engineers"],
      name: "Eve",
      email: "eve@shop.example",
    };
    await signIn(browser, provider);
    const name = `subject:${provider.issuer}#8d1f`;
    const tell = async () => JSON.parse((await browser.send(session)).body);
    expect(await tell()).toMatchObject({ name, shownName: "eve@shop.example" });
    provider.claims = { ...provider.claims, email: 7, preferred_username: ` ${"é".repeat(99)}` };
    await signIn(browser, provider);
    const { shownName } = await tell();
    expect(shownName).toMatch(/^é{60,64}…?$/);
    // Who has a name in the access list is called by that.
    provider.claims = { sub: "ann", email: "root@shop.example" };
    await signIn(browser, provider);
    expect(await tell()).toMatchObject({ name: "ann", shownName: "ann" });
  });

  it("uses endpoints that are configured, and the address that is", async () => {
    const first = await startSignInProvider(stage, { clientId: "console" });
    const { browser } = await start(undefined, {
      HEADGATE_CONSOLE_URL: "https://headgate.example",
      HEADGATE_CONSOLE_OIDC_AUTHORIZATION_URL: `${first.issuer}/authorize?tenant=a`,
      HEADGATE_CONSOLE_OIDC_TOKEN_URL: `${first.issuer}/token`,
      HEADGATE_CONSOLE_OIDC_SCOPE: "openid groups",
    });
    const begun = await browser.send({ path: "/console/oidc/start" });
    const location = new URL(String(begun.headers["location"]));
    expect(`${location.origin}${location.pathname}`).toBe(`${first.issuer}/authorize`);
    expect(Object.fromEntries(location.searchParams)).toMatchObject({
      tenant: "a",
      redirect_uri: "https://headgate.example/console/oidc/callback",
      scope: "openid groups",
      code_challenge_method: "S256",
    });
    // Whoever is in front of it speaks TLS with browsers.
    expect([begun.headers["set-cookie"]].flat()).toEqual([
      expect.stringMatching(/^__Host-headgate_sign_in=.*; SameSite=Lax; Secure$/),
    ]);
  });

  it("asks the provider no more often than it must, whoever begins and never ends", async () => {
    const { provider, browser } = await start();
    const path = "/console/oidc/start";
    const begun = await Promise.all(Array.from({ length: 40 }, () => browser.send({ path })));
    expect(begun.map(({ status }) => status)).toEqual(begun.map(() => 303));
    expect(provider.asked.discovery).toBe(1);
    provider.faults.isSlow = true;
    const again = await browser.send({ path });
    const back = await provider.visit(String(again.headers["location"]));
    const cookie = `headgate_sign_in=${browser.cookies.get("headgate_sign_in")}`;
    const ended = await Promise.all(
      Array.from({ length: redeemingMax + 1 }, () =>
        browser.send({ path: `${back.pathname}${back.search}`, headers: { cookie } }),
      ),
    );
    const places = new Set(ended.map(({ headers }) => headers["location"]));
    expect(places).toEqual(new Set(["/?signInFailed=unavailable"]));
    expect(provider.asked.token).toBe(redeemingMax);
  });

  it("ends with the grant it stands for", async () => {
    const { provider, browser, access } = await start();
    await signIn(browser, provider);
    expect((await browser.send(session)).status).toBe(200);
    await writeFile(access, "reader * group:engineers\n");
    await waitFor("nobody to be known", async () => (await browser.send(session)).status === 401);
  });

  it.each<readonly [string, (provider: SignInProvider) => void, string]>([
    ["whoever was asked says no", ({ faults }) => (faults.error = "access_denied"), "denied"],
    ["the provider refuses", ({ faults }) => (faults.error = "server_error"), "refused"],
    ["the token is somebody else's", ({ faults }) => (faults.audience = "headgate"), "refused"],
    [
      "the token was asked for by somebody else",
      (provider) => (provider.claims = { sub: "ann", azp: "another" }),
      "refused",
    ],
    ["the token was made before", ({ faults }) => (faults.nonce = "another"), "refused"],
    ["there is no token", ({ faults }) => (faults.tokenAnswer = "{}"), "refused"],
    ["the answer is no JSON", ({ faults }) => (faults.tokenAnswer = "<html>"), "refused"],
    [
      "the answer has no end",
      ({ faults }) => (faults.tokenAnswer = " ".repeat(100_000)),
      "unavailable",
    ],
    ["they may do nothing here", (provider) => (provider.claims = { sub: "eve" }), "unknown"],
  ])("says that %s", async (_name, fault, why) => {
    const { provider, browser, events } = await start();
    fault(provider);
    expect(await signIn(browser, provider, { back: "/#/keys" })).toBe(
      `/?signInFailed=${why}#/keys`,
    );
    expect((await browser.send(session)).status).toBe(401);
    const refused = events.filter(({ event }) => event === "adminCallRefused");
    expect(refused).toMatchObject([{ method: "SignIn" }]);
  });

  it("is only for the browser that began it, and once", async () => {
    const { provider, browser } = await start();
    const change = (url: URL): URL => {
      url.searchParams.set("state", "forged");
      return url;
    };
    expect(await signIn(browser, provider, { change })).toBe("/?signInFailed=stale");
    const begun = await browser.send({ path: "/console/oidc/start" });
    const back = await provider.visit(String(begun.headers["location"]));
    const path = `${back.pathname}${back.search}`;
    browser.cookies.set("headgate_sign_in", "forged");
    expect((await browser.send({ path })).headers["location"]).toBe("/?signInFailed=stale");
    browser.cookies.clear();
    expect((await browser.send({ path })).headers["location"]).toBe("/?signInFailed=stale");
    const other = (url: URL): URL => {
      url.searchParams.set("code", "of somebody else");
      return url;
    };
    expect(await signIn(browser, provider, { change: other })).toBe("/?signInFailed=refused");
    const mixed = (url: URL): URL => {
      url.searchParams.set("iss", "https://evil.example");
      return url;
    };
    expect(await signIn(browser, provider, { change: mixed })).toBe("/?signInFailed=refused");
  });

  it.each(["//evil.example", "https://evil.example", "/\\evil.example", "/\t/evil", "evil", ""])(
    "goes on at a page of its own, whatever it was begun with: %j",
    async (back) => {
      const { provider, browser } = await start();
      expect(await signIn(browser, provider, { back })).toBe("/");
    },
  );

  it("is not begun by pages of others, nor where discovery is of others", async () => {
    const { provider, browser } = await start();
    const headers = { "sec-fetch-site": "cross-site" };
    expect((await browser.send({ path: "/console/oidc/start", headers })).status).toBe(403);
    provider.faults.issuer = "https://evil.example";
    const begun = await browser.send({ path: "/console/oidc/start" });
    expect(begun.headers["location"]).toBe("/?signInFailed=unavailable");
  });
});

describe("the settings of the console", () => {
  const oidc = {
    HEADGATE_ADMIN_ACCESS: "/a/list",
    HEADGATE_ADMIN_OIDC_ISSUER: "https://id.example",
    HEADGATE_ADMIN_OIDC_AUDIENCE: "headgate",
    HEADGATE_ADMIN_OIDC_JWKS_URL: "https://id.example/keys",
  };

  it.each<readonly [Record<string, string>, RegExp]>([
    [{ HEADGATE_CONSOLE: "maybe" }, /must be one of on, read-only, off/],
    [{ HEADGATE_CONSOLE_KEY: "short" }, /HEADGATE_CONSOLE_KEY must have at least 32/],
    [{ HEADGATE_CONSOLE_SESSION: "1s" }, /HEADGATE_CONSOLE_SESSION must be a time/],
    [{ HEADGATE_CONSOLE_URL: "http://a.example" }, /HEADGATE_CONSOLE_URL must be an https URL/],
    [{ HEADGATE_CONSOLE_URL: "https://a.example/path" }, /and has no path/],
    [{ HEADGATE_CONSOLE_OIDC_CLIENT_ID: "a" }, /needs HEADGATE_ADMIN_OIDC_ISSUER/],
    [{ ...oidc, HEADGATE_CONSOLE_OIDC_CLIENT_SECRET: "a" }, /need HEADGATE_CONSOLE_OIDC_CLIENT_ID/],
    [
      { ...oidc, HEADGATE_CONSOLE_OIDC_CLIENT_ID: "a", HEADGATE_CONSOLE_OIDC_SCOPE: "groups" },
      /must have the word openid/,
    ],
    [
      {
        ...oidc,
        HEADGATE_CONSOLE_OIDC_CLIENT_ID: "a",
        HEADGATE_CONSOLE_OIDC_TOKEN_URL: "https://id.example/token",
      },
      /belong together/,
    ],
  ])("are refused where they do not hold: %j", (env, message) => {
    const loaded = loadConfig({ env: { HEADGATE_POLICY: "/a", ...env }, flags: {} });
    expect(loaded.kind === "problems" && loaded.problems.join("\n")).toMatch(message);
  });

  it("keep no secret in the configuration but where it is used", () => {
    const secret = "a secret of the console, 32 long";
    const loaded = loadConfig({
      env: {
        ...oidc,
        HEADGATE_CONSOLE_KEY: secret,
        HEADGATE_CONSOLE_OIDC_CLIENT_ID: "a",
        HEADGATE_CONSOLE_OIDC_CLIENT_SECRET: secret,
      },
      flags: {},
    });
    if (loaded.kind !== "config") throw new Error("it is refused");
    const { admin, ...rest } = loaded.config;
    expect(admin?.console?.key).toBe(secret);
    expect(JSON.stringify(rest)).not.toContain(secret);
  });
});
