import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { beforeAll, describe, expect, it } from "vitest";
import { TestAuthority } from "../support/certificates.js";
import { captureCli } from "../support/cli.js";
import { freePort } from "../support/free-port.js";
import { HostedHeadgate } from "../support/hosted-headgate.js";
import { useStage } from "../support/stage.js";

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - {domain: shop, descriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 2}}]}
    - {domain: pay, descriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 2}}]}
`;

const stage = useStage("file");

async function file(name: string, text: string): Promise<string> {
  const path = join(stage.folder, name);
  await writeFile(path, text);
  return path;
}

const because = ["--reason", "a test"] as const;

describe("a token", () => {
  const readerToken = "0123456789abcdef-reader";
  const shopToken = "0123456789abcdef-shop";
  let url = "";
  let signed: (lifetime: string) => Promise<string>;

  beforeAll(async () => {
    const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
    const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k" }] });
    const provider = createServer((_request, response) => response.end(keys));
    const providerPort = await freePort();
    await new Promise<void>((resolve) => provider.listen(providerPort, "127.0.0.1", resolve));
    stage.atEnd(() => provider.close());
    signed = (lifetime) =>
      new SignJWT({})
        .setProtectedHeader({ alg: "ES256", kid: "k" })
        .setIssuer("https://id.example")
        .setAudience("headgate")
        .setSubject("ann")
        .setExpirationTime(lifetime)
        .sign(privateKey);
    const hash = (token: string) => createHash("sha256").update(token).digest("hex");
    const access = [
      `reader * token-sha256:${hash(readerToken)} dashboard`,
      `operator shop token-sha256:${hash(shopToken)} shop-team`,
      "operator * subject:ann",
    ];
    const adminPort = await freePort();
    url = `http://127.0.0.1:${adminPort}`;
    await HostedHeadgate.start(stage, {
      policy,
      env: {
        HEADGATE_ADMIN_ADDR: `127.0.0.1:${adminPort}`,
        HEADGATE_ADMIN_ACCESS: await file("access", `${access.join("\n")}\n`),
        HEADGATE_ADMIN_OIDC_ISSUER: "https://id.example",
        HEADGATE_ADMIN_OIDC_AUDIENCE: "headgate",
        HEADGATE_ADMIN_OIDC_JWKS_URL: `http://127.0.0.1:${providerPort}/keys`,
      },
    });
  });

  function run(token: string, ...words: readonly string[]) {
    return captureCli(words, { env: { HEADGATE_ADMIN_URL: url, HEADGATE_ADMIN_TOKEN: token } });
  }

  it("of a reader looks at everything, and changes nothing", async () => {
    for (const words of [["rules"], ["services"], ["fleet"], ["history"], ["audit"]]) {
      expect((await run(readerToken, ...words)).code, words.join(" ")).toBe(0);
    }
    const path = await file("policy.yaml", policy);
    for (const words of [
      ["apply", path],
      ["apply", path, "--shadow"],
      ["rollback"],
      ["keys", "reset", "shop", "user=ann"],
      ["keys", "freeze", "shop", "user=ann"],
    ]) {
      const { code, err } = await run(readerToken, ...words, ...because);
      expect([code, err], words.join(" ")).toEqual([
        1,
        expect.stringMatching(
          /This needs the role operator.*\. Ask your administrator for a token/,
        ),
      ]);
    }
  });

  it("of one domain's operator changes its keys, and no policy", async () => {
    const freeze = ["keys", "freeze", "shop", "user=ann", ...because];
    expect((await run(shopToken, ...freeze)).code).toBe(0);
    const elsewhere = await run(shopToken, "keys", "freeze", "pay", "user=ann", ...because);
    expect(elsewhere.err).toContain("This needs the role");
    const { code, err } = await run(shopToken, "history");
    expect([code, err]).toEqual([1, expect.stringContaining("This needs the role reader")]);
    const { out } = await run(readerToken, "audit");
    expect(out).toMatch(/shop-team +SetOverride +shop user=ann +none → frozen +a test/);
  });

  it("that has expired is told so, and nothing else", async () => {
    expect((await run(await signed("5m"), "rules")).code).toBe(0);
    const expired = await signed("-5m");
    const { code, out, err } = await run(expired, "rules");
    expect([code, out]).toEqual([1, ""]);
    expect(err).toBe("headgate rules: The token has expired; get a new one.");
  });

  it("that nobody knows, or that is not there, is told where one goes", async () => {
    const unknown = await run("0123456789abcdef-nobody", "rules");
    expect([unknown.code, unknown.err]).toEqual([
      1,
      "headgate rules: The credentials are unknown. Check the token.",
    ]);
    const { code, err } = await captureCli(["rules"], { env: { HEADGATE_ADMIN_URL: url } });
    expect([code, err]).toEqual([1, expect.stringContaining("HEADGATE_ADMIN_TOKEN_FILE")]);
  });
});

describe("TLS with an authority of one's own", () => {
  /** Where the files are, by what they hold. */
  const files: Record<string, string> = {};
  let port = 0;
  let expiredPort = 0;

  beforeAll(async () => {
    const authority = new TestAuthority();
    const stranger = new TestAuthority("Another authority");
    const issued = {
      server: authority.issue({ names: ["localhost"] }),
      old: authority.issue({ names: ["localhost"], isExpired: true }),
      ann: authority.issue({ uris: ["spiffe://shop/ann"] }),
      ben: authority.issue({ uris: ["spiffe://shop/ben"] }),
      strange: stranger.issue({ uris: ["spiffe://shop/ann"] }),
    };
    for (const [name, { certificate, key }] of Object.entries(issued)) {
      files[`${name}.pem`] = await file(`${name}.pem`, certificate);
      files[`${name}.key`] = await file(`${name}.key`, key);
    }
    files["ca"] = await file("ca.pem", authority.certificate);
    files["other-ca"] = await file("other-ca.pem", stranger.certificate);
    files["junk"] = await file("junk.pem", "no certificate\n");
    files["access"] = await file("names", "reader * certificate:spiffe://shop/ann ann\n");
    [port, expiredPort] = await Promise.all([start("server"), start("old")]);
  });

  async function start(certificate: string): Promise<number> {
    const adminPort = await freePort();
    await HostedHeadgate.start(stage, {
      policy,
      env: {
        HEADGATE_ADMIN_ADDR: `0.0.0.0:${adminPort}`,
        HEADGATE_ADMIN_ACCESS: at("access"),
        GRPC_SERVER_USE_TLS: "true",
        GRPC_SERVER_TLS_CERT: at(`${certificate}.pem`),
        GRPC_SERVER_TLS_KEY: at(`${certificate}.key`),
        GRPC_CLIENT_TLS_CACERT: at("ca"),
      },
    });
    return adminPort;
  }

  function at(name: string): string {
    return files[name] ?? name;
  }

  /** Asks with files by their names; `ann` is a certificate and its key. */
  function rules(
    { ca, as, url }: { readonly ca?: string; readonly as?: string; readonly url?: string },
    ...words: readonly string[]
  ) {
    const flags = ["--admin-url", url ?? `https://localhost:${port}`];
    if (ca !== undefined) flags.push("--admin-ca", at(ca));
    if (as !== undefined) {
      flags.push("--admin-cert", at(`${as}.pem`), "--admin-key", at(`${as}.key`));
    }
    return captureCli(["rules", ...flags, ...words], { env: {} });
  }

  it("lets in who has a certificate that is known, by flags or by the environment", async () => {
    expect(await rules({ ca: "ca", as: "ann" })).toMatchObject({ code: 0, err: "" });
    const env = {
      HEADGATE_ADMIN_URL: `https://localhost:${port}`,
      HEADGATE_ADMIN_CA: at("ca"),
      HEADGATE_ADMIN_CERT: at("ann.pem"),
      HEADGATE_ADMIN_KEY: at("ann.key"),
    };
    expect(await captureCli(["rules", "shop"], { env })).toMatchObject({ code: 0, err: "" });
  });

  it.each([
    [{ as: "ann" }, "is signed by an unknown CA; set --admin-ca."],
    [{ ca: "other-ca", as: "ann" }, "is not signed by a CA in --admin-ca."],
    [{ ca: "ca" }, "requires a client certificate: set --admin-cert and --admin-key."],
    [{ ca: "ca", as: "strange" }, "reject the certificate of --admin-cert: another"],
    [{ ca: "ca", as: "old" }, "reject the certificate of --admin-cert: another"],
  ])("says of %o what to do, and ends with 5", async (asked, words) => {
    const { code, out, err } = await rules(asked);
    expect([code, out, err]).toEqual([5, "", expect.stringContaining(words)]);
  });

  it("says of other ports, names and times what to do", async () => {
    const both = { ca: "ca", as: "ann" };
    const byAddress = await rules({ ...both, url: `https://127.0.0.1:${port}` });
    expect(byAddress.err).toContain("is for other names; use one of them in --admin-url.");
    const expired = await rules({ ...both, url: `https://localhost:${expiredPort}` });
    expect(expired.err).toContain("has expired; renew it");
    const plain = await rules({ url: `http://localhost:${port}` });
    expect(plain.err).toContain("accept only TLS (https://)");
    expect([byAddress, expired, plain].map(({ code }) => code)).toEqual([5, 5, 5]);
  });

  it("says who is not known", async () => {
    const { code, err } = await rules({ ca: "ca", as: "ben" });
    expect([code, err]).toEqual([1, expect.stringContaining("No line of HEADGATE_ADMIN_ACCESS")]);
  });

  it("looks at files before it asks", async () => {
    const junk = await rules({ ca: "junk", as: "ann" });
    expect([junk.code, junk.err]).toEqual([1, expect.stringContaining("no certificate in PEM")]);
    const alone = await rules({ ca: "ca" }, "--admin-cert", at("ann.pem"));
    expect([alone.code, alone.err]).toEqual([
      2,
      expect.stringContaining("A certificate needs its key"),
    ]);
    const mixed = ["--admin-cert", at("ann.pem"), "--admin-key", at("ben.key")];
    const mismatched = await rules({ ca: "ca" }, ...mixed);
    expect(mismatched.code).toBe(1);
    expect(mismatched.err).toContain("the key must belong to the certificate");
    const swapped = await rules(
      { ca: "ca" },
      "--admin-cert",
      at("ann.key"),
      "--admin-key",
      at("ca"),
    );
    expect(swapped.err).toContain("ann.key contains no certificate in PEM");
    const plain = await rules({ ca: "ca", url: `http://localhost:${port}` });
    expect([plain.code, plain.err]).toEqual([2, expect.stringContaining("starts with https://")]);
  });
});
