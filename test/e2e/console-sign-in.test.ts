import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startAdminApp } from "../support/admin.js";
import { TestAuthority } from "../support/certificates.js";
import { type SignInProvider, startSignInProvider } from "../support/sign-in-provider.js";
import { startBrowser } from "../support/site.js";
import { useStage } from "../support/stage.js";

const stage = useStage("file");
let browser: Browser;

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - {domain: shop, descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 2}}]}
`;

beforeAll(async () => {
  browser = await startBrowser(stage);
});

async function file(name: string, text: string): Promise<string> {
  const path = join(stage.folder, name);
  await writeFile(path, text);
  return path;
}

describe("single sign-on", () => {
  let provider: SignInProvider;
  let origin: string;
  let page: Page;

  beforeAll(async () => {
    provider = await startSignInProvider(stage, { clientId: "console", secret: "of the console" });
    const list = "operator shop subject:ann ann\nreader * group:engineers\n";
    const { port } = await startAdminApp(stage, policy, {
      HEADGATE_ADMIN_ACCESS: await file("access", list),
      HEADGATE_ADMIN_OIDC_ISSUER: provider.issuer,
      HEADGATE_ADMIN_OIDC_AUDIENCE: "headgate",
      HEADGATE_ADMIN_OIDC_JWKS_URL: `${provider.issuer}/keys`,
      HEADGATE_CONSOLE_OIDC_CLIENT_ID: "console",
      HEADGATE_CONSOLE_OIDC_CLIENT_SECRET: "of the console",
    });
    origin = `http://127.0.0.1:${port}`;
  });

  beforeEach(async () => {
    const context = await browser.newContext();
    context.setDefaultTimeout(10_000);
    page = await context.newPage();
    provider.claims = { sub: "ann" };
    return () => context.close();
  });

  /** Goes to a view, and from there to the provider. */
  async function signIn(hash: string): Promise<void> {
    await page.goto(`${origin}/${hash}`);
    await page.click("text=Single sign-on");
  }

  it("leads back to the view, with the role of the access list, until one signs out", async () => {
    const asked = page.waitForRequest((request) => request.url().includes("/authorize?"));
    await signIn("#/key/shop/user=ann");
    await page.waitForSelector("text=Override …");
    expect(page.url()).toBe(`${origin}/#/key/shop/user=ann`);
    expect(await page.textContent(".who")).toBe("ann operator");
    // What goes by the browser is a code that only this Headgate can redeem.
    const { searchParams } = new URL((await asked).url());
    expect(Object.fromEntries(searchParams)).toMatchObject({
      response_type: "code",
      code_challenge_method: "S256",
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    });
    const cookies = await page.context().cookies();
    expect(cookies).toMatchObject([{ httpOnly: true, sameSite: "Strict" }]);
    expect(await page.evaluate("sessionStorage.length + localStorage.length")).toBe(0);
    await page.click("text=Sign out");
    await page.waitForSelector("text=Single sign-on");
    expect(await page.context().cookies()).toEqual([]);
    // What the session was is none any more, also where a browser has kept it.
    await page.context().addCookies(cookies);
    await page.reload();
    await page.waitForSelector("text=Single sign-on");
  });

  it("gives a reader no button that a reader may not press", async () => {
    provider.claims = { sub: "eva", groups: ["engineers"], name: "<b>Eva</b>\u202e" };
    await signIn("#/key/shop/user=ann");
    await page.waitForSelector("text=fits now");
    expect(await page.textContent(".who")).toBe("<b>Eva</b>\\u{202e} reader");
    expect(await page.locator("text=Override …").count()).toBe(0);
  });

  it.each<readonly [string, (faulty: SignInProvider) => void, RegExp]>([
    ["denied", ({ faults }) => (faults.error = "access_denied"), /denied the sign-in/],
    ["refused", ({ faults }) => (faults.error = "server_error"), /does not accept/],
    ["unavailable", ({ faults }) => (faults.tokenAnswer = " ".repeat(100_000)), /not answer/],
    ["unknown", (faulty) => (faulty.claims = { sub: "mallory" }), /grants you no access/],
  ])("says why it failed, once: %s", async (_why, fault, says) => {
    fault(provider);
    await signIn("#/limits");
    const alert = page.locator("[role=alert]");
    await alert.waitFor();
    expect(await alert.textContent()).toMatch(says);
    expect(page.url()).toBe(`${origin}/#/limits`);
    provider.faults = {};
    provider.claims = { sub: "ann" };
    await page.reload();
    await page.waitForSelector("text=Single sign-on");
    expect(await alert.count()).toBe(0);
    await page.click("text=Single sign-on");
    await page.waitForSelector("text=1 rule of policy");
  });

  it("is renewed in another tab, and the form stays", async () => {
    await signIn("#/key/shop/user=ann");
    await page.click("text=Override …");
    await page.fill("dialog label:has-text('Reason') input", "kept");
    await page.context().clearCookies();
    await page.waitForSelector("text=Your session has ended");
    const opened = page.waitForEvent("popup");
    await page.click("text=Single sign-on, in a new tab");
    await (await opened).waitForSelector("nav[aria-label=Views]");
    await page.waitForSelector("text=Your session has ended", { state: "detached" });
    expect(await page.inputValue("dialog label:has-text('Reason') input")).toBe("kept");
    await page.click('dialog button:text-is("Set override")');
    await page.waitForSelector("text=on all replicas within a second");
  });
});

describe("a client certificate", () => {
  const authority = new TestAuthority();
  let origin: string;

  beforeAll(async () => {
    const server = authority.issue({ addresses: ["127.0.0.1"] });
    const list = "operator * certificate:spiffe://shop/ann ann\n";
    const { port } = await startAdminApp(stage, policy, {
      // To this machine alone it speaks without TLS.
      HEADGATE_ADMIN_ADDR: "0.0.0.0:0",
      HEADGATE_ADMIN_ACCESS: await file("certificates", list),
      GRPC_SERVER_USE_TLS: "true",
      GRPC_SERVER_TLS_CERT: await file("cert.pem", server.certificate),
      GRPC_SERVER_TLS_KEY: await file("key.pem", server.key),
      GRPC_CLIENT_TLS_CACERT: await file("ca.pem", authority.certificate),
    });
    origin = `https://127.0.0.1:${port}`;
  });

  async function contextOf(uri: string): Promise<BrowserContext> {
    const { certificate, key } = authority.issue({ uris: [uri] });
    const cert = Buffer.from(certificate);
    const context = await browser.newContext({
      // The browser does not know the test's authority.
      ignoreHTTPSErrors: true,
      clientCertificates: [{ origin, cert, key: Buffer.from(key) }],
    });
    context.setDefaultTimeout(10_000);
    return context;
  }

  it("needs no form, and changes what its role may", async () => {
    const context = await contextOf("spiffe://shop/ann");
    const page = await context.newPage();
    await page.goto(`${origin}/#/key/shop/user=ann`);
    await page.click("text=Freeze …");
    await page.fill("dialog label:has-text('Reason') input", "scraping");
    await page.click('dialog button:text-is("Freeze")');
    await page.waitForSelector("text=on all replicas within a second");
    expect(await page.textContent(".who")).toBe("ann operator");
    // There is nothing to be signed out of.
    expect(await page.locator("text=Sign out").count()).toBe(0);
    expect(await context.cookies()).toEqual([]);
    await context.close();
  });

  it("of somebody unknown leads to the form", async () => {
    const context = await contextOf("spiffe://shop/ben");
    const page = await context.newPage();
    await page.goto(origin);
    await page.waitForSelector("input[type=password]");
    await context.close();
  });
});
