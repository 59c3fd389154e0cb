import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { generateKeyPair, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/app/config/config.js";
import { adminClients, adminProtocols, startAdminApp } from "../support/admin.js";
import { startIdentityProvider, type TokenFields } from "../support/identity-provider.js";
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

const token = "0123456789abcdef0123456789abcdef";
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

async function failure(call: Promise<unknown>): Promise<readonly [Code, string]> {
  const thrown: unknown = await call.then(
    () => new Error("it was answered"),
    (error: unknown) => error,
  );
  if (!(thrown instanceof ConnectError)) throw thrown;
  return [thrown.code, thrown.rawMessage];
}

/** Ends with the first message of a stream, or its failure. */
async function firstOf(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream) return;
}

async function accessFile(text: string): Promise<string> {
  const path = join(stage.folder, "access");
  await writeFile(path, text);
  return path;
}

const freeze = (domain: string) => ({
  override: {
    domain,
    entries: [{ key: "user", value: "7" }],
    effect: { case: "isFrozen", value: true } as const,
    reason: "abuse",
  },
});

describe.each(adminProtocols)("access over %s", (protocol) => {
  it("lets in who is known, to what is theirs", async () => {
    const list = await accessFile(`operator shop token-sha256:${sha256(token)} ann\n`);
    const { port } = await startAdminApp(stage, policy, { HEADGATE_ADMIN_ACCESS: list });
    const stranger = adminClients(port, { protocol });
    expect(await failure(stranger.limits.listRules({}))).toEqual([
      Code.Unauthenticated,
      "credentials are needed: a bearer token",
    ]);
    const guess = adminClients(port, { protocol, token: "wrong" });
    expect((await failure(guess.limits.listRules({})))[0]).toBe(Code.Unauthenticated);
    const stream = adminClients(port, { protocol }).limits.tailDecisions({});
    expect((await failure(firstOf(stream)))[0]).toBe(Code.Unauthenticated);
    const { limits, policies, fleet } = adminClients(port, { protocol, token });
    expect((await limits.listRules({})).rules.map(({ domain }) => domain)).toEqual(["shop"]);
    expect((await failure(limits.listRules({ domain: "pay" })))[0]).toBe(Code.PermissionDenied);
    expect((await failure(limits.setOverride(freeze("pay"))))[0]).toBe(Code.PermissionDenied);
    expect((await failure(policies.getPolicy({})))[0]).toBe(Code.PermissionDenied);
    // Nobody learns from a refusal which domains and rules others have.
    const refused = [Code.PermissionDenied, "this needs the role reader in this domain"];
    for (const other of [{ domain: "pa" }, { domain: "pay", ruleLabel: "use" }]) {
      expect(await failure(limits.topKeys(other))).toEqual(refused);
      expect(await failure(limits.nearLimitKeys(other))).toEqual(refused);
      expect(await failure(limits.listOverrides(other))).toEqual(refused);
      expect(await failure(firstOf(limits.tailDecisions(other)))).toEqual(refused);
    }
    const { override } = await limits.setOverride(freeze("shop"));
    expect(override?.author).toBe("ann");
    expect((await fleet.listAudit({})).entries).toMatchObject([{ author: "ann" }]);
  });
});

describe("access", () => {
  it("follows its file, and keeps the last good one", async () => {
    const list = await accessFile(`reader * token-sha256:${sha256(token)} ann\n`);
    const { port } = await startAdminApp(stage, policy, { HEADGATE_ADMIN_ACCESS: list });
    const { limits } = adminClients(port, { token });
    expect((await failure(limits.setOverride(freeze("shop"))))[0]).toBe(Code.PermissionDenied);
    await writeFile(list, `operator * token-sha256:${sha256(token)} ann\n`);
    await waitFor("the new list is active", async () =>
      limits.setOverride(freeze("shop")).then(
        () => true,
        () => false,
      ),
    );
    await writeFile(list, "nonsense\n");
    const other = "another token that is long";
    await writeFile(`${list}.next`, "");
    expect((await limits.listRules({})).rules).toHaveLength(2);
    await writeFile(list, `operator * token-sha256:${sha256(other)} ben\n`);
    await waitFor("the token is gone", async () =>
      limits.listRules({}).then(
        () => false,
        () => true,
      ),
    );
  });

  it("ends a stream whose reader may see less than when it began", async () => {
    const line = (domains: string) => `reader ${domains} token-sha256:${sha256(token)} ann\n`;
    const list = await accessFile(line("shop,pay"));
    const { port } = await startAdminApp(stage, policy, { HEADGATE_ADMIN_ACCESS: list });
    const { limits } = adminClients(port, { token });
    // It is looked at every ten seconds whether they may.
    const follow = async (): Promise<void> => {
      for await (const _ of limits.tailDecisions({})) await writeFile(list, line("shop"));
    };
    const ended = [Code.Unauthenticated, "the credentials are no longer valid"];
    expect(await failure(follow())).toEqual(ended);
  });

  it("lets people on this machine look, and names that lead here from elsewhere not", async () => {
    const { port } = await startAdminApp(stage, policy);
    const { limits } = adminClients(port);
    expect((await limits.listRules({})).rules).toHaveLength(2);
    const [code, message] = await failure(limits.setOverride(freeze("shop")));
    expect(code).toBe(Code.PermissionDenied);
    expect(message).toContain("HEADGATE_ADMIN_OPEN");
    const ask = (host: string) =>
      new Promise<string>((resolve) => {
        const socket = connect(port, "127.0.0.1", () => {
          const path = "/headgate.admin.v1.LimitService/ListRules";
          const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json`;
          socket.write(`${head}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`);
        });
        let text = "";
        socket.on("data", (bytes) => {
          text += String(bytes);
        });
        socket.on("close", () => resolve(text));
      });
    expect(await ask(`localhost:${port}`)).toContain("HTTP/1.1 200");
    expect(await ask("evil.example")).toContain("HTTP/1.1 403");
  });

  it("holds callers to their pace", async () => {
    const env = { HEADGATE_ADMIN_CALLS_PER_SECOND: "1" };
    const { metrics, port } = await startAdminApp(stage, policy, env);
    const { fleet } = adminClients(port);
    const ends: (readonly [Code, string])[] = [];
    await waitFor("a call is too much", async () => {
      await fleet.getFleet({}).catch((error: ConnectError) => {
        ends.push([error.code, error.rawMessage]);
      });
      return ends.length > 0;
    });
    expect(ends[0]?.[0]).toBe(Code.ResourceExhausted);
    expect(ends[0]?.[1]).toContain("too many calls; try again in");
    const series = 'headgate_admin_requests_total{method="GetFleet",code="resource_exhausted"} 1';
    expect(await metrics()).toContain(series);
  });

  it("takes tokens of an identity provider, and says of an expired one that alone", async () => {
    const { jwksUrl, keys, sign } = await startIdentityProvider(stage);
    const env = {
      HEADGATE_ADMIN_ACCESS: await accessFile("operator shop group:ops\nreader pay subject:ann\n"),
      HEADGATE_ADMIN_OIDC_ISSUER: "https://id.example",
      HEADGATE_ADMIN_OIDC_AUDIENCE: "headgate",
      HEADGATE_ADMIN_OIDC_JWKS_URL: jwksUrl,
    };
    const { port } = await startAdminApp(stage, policy, env);
    const make = (fields: TokenFields = {}) => sign({ groups: ["ops"] }, fields);
    const ask = async (jwt: string) => adminClients(port, { token: jwt }).limits.listRules({});
    const good = await make();
    expect((await ask(good)).rules.map(({ domain }) => domain)).toEqual(["shop", "pay"]);
    const { override } = await adminClients(port, { token: good }).limits.setOverride(
      freeze("shop"),
    );
    expect(override?.author).toBe("subject:https://id.example#ann");
    const expired = await make({ exp: "-5m" });
    expect(await failure(ask(expired))).toEqual([Code.Unauthenticated, "expired"]);
    const known = "the credentials are unknown";
    const elsewhere = await make({ aud: "other" });
    expect(await failure(ask(elsewhere))).toEqual([Code.Unauthenticated, known]);
    const forged = `${good.slice(0, -6)}AAAAAA`;
    expect(await failure(ask(forged))).toEqual([Code.Unauthenticated, known]);
    const head = Buffer.from('{"alg":"none"}').toString("base64url");
    const unsigned = `${head}.${good.split(".")[1]}.`;
    expect(await failure(ask(unsigned))).toEqual([Code.Unauthenticated, known]);
    const shared = await new SignJWT({ groups: ["ops"] })
      .setProtectedHeader({ alg: "HS256", kid: "k" })
      .setExpirationTime("5m")
      .sign(Buffer.from(keys));
    expect(await failure(ask(shared))).toEqual([Code.Unauthenticated, known]);
  });

  it("refuses tokens while the provider's keys cannot be read", async () => {
    const { privateKey } = await generateKeyPair("ES256");
    const env = {
      HEADGATE_ADMIN_ACCESS: await accessFile("operator * subject:ann\n"),
      HEADGATE_ADMIN_OIDC_ISSUER: "https://id.example",
      HEADGATE_ADMIN_OIDC_AUDIENCE: "headgate",
      HEADGATE_ADMIN_OIDC_JWKS_URL: "http://127.0.0.1:1/keys",
    };
    const { port } = await startAdminApp(stage, policy, env);
    const jwt = await new SignJWT({})
      .setProtectedHeader({ alg: "ES256", kid: "k" })
      .setSubject("ann")
      .setExpirationTime("5m")
      .sign(privateKey);
    const { limits } = adminClients(port, { token: jwt });
    expect((await failure(limits.listRules({})))[0]).toBe(Code.Unavailable);
  });
});

describe("profiles at the debug port", () => {
  it("are for operators of all domains, where they are on", async () => {
    const roles = ["operator *", "operator shop,pay", "reader *"];
    const lines = roles.map((role, i) => `${role} token-sha256:${sha256(token + i)} name-${i}\n`);
    const env = { HEADGATE_ADMIN_ACCESS: await accessFile(lines.join("")), DEBUG_PORT: "0" };
    const statuses = async (more: Record<string, string>) => {
      const { app, events } = await startAdminApp(stage, policy, { ...env, ...more });
      const url = `http://127.0.0.1:${app.debugAddress?.port}/debug/pprof/profile?seconds=1`;
      const found = [(await fetch(url)).status];
      for (let i = 0; i < roles.length; i += 1) {
        const headers = { authorization: `Bearer ${token}${i}` };
        found.push((await fetch(url, { headers })).status);
      }
      const logged = events.filter(({ method }) => method === "/debug/pprof/profile");
      return [...found, ...logged.map(({ event, caller }) => `${event} ${caller}`)];
    };
    expect(await statuses({})).toEqual([403, 403, 403, 403]);
    expect(await statuses({ HEADGATE_DEBUG_PROFILES: "true" })).toEqual([
      ...[403, 200, 403, 403],
      "adminCallRefused undefined",
      "adminCallersShown name-0",
      "adminCallRefused name-1",
      "adminCallRefused name-2",
    ]);
  });
});

describe("chooseAdmin()", () => {
  const problems = (env: Record<string, string>) => {
    const loaded = loadConfig({ flags: {}, env });
    return loaded.kind === "problems" ? loaded.problems.join("\n") : "";
  };

  it("takes no profiles that nobody may have, or that leave this machine", () => {
    const profiles = { HEADGATE_DEBUG_PROFILES: "true" };
    const open = { ...profiles, HEADGATE_ADMIN_OPEN: "true" };
    expect(problems(profiles)).toContain("it has none; set HEADGATE_ADMIN_ADDR");
    expect(problems({ ...open, HEADGATE_ADMIN_ADDR: "" })).toContain("it has none");
    expect(problems({ ...open, DEBUG_HOST: "0.0.0.0" })).toContain("listen on 127.0.0.1");
    expect(problems({ ...open, DEBUG_HOST: "" })).toBe("");
    expect(problems({ ...profiles, HEADGATE_ADMIN_ACCESS: "/etc/access" })).toBe("");
    expect(problems(open)).toBe("");
  });

  it("opens nothing to a network without credentials", () => {
    expect(problems({ HEADGATE_ADMIN_ADDR: ":8082" })).toContain(
      "HEADGATE_ADMIN_ACCESS is not set",
    );
    expect(
      problems({ HEADGATE_ADMIN_ADDR: "10.0.0.1:8082", HEADGATE_ADMIN_OPEN: "true" }),
    ).toContain("everybody could call");
    expect(problems({ HEADGATE_ADMIN_ADDR: "[::1]:8082" })).toBe("");
    expect(problems({ HEADGATE_ADMIN_ADDR: "" })).toBe("");
  });

  it("takes no protection that would not hold", () => {
    const access = { HEADGATE_ADMIN_ACCESS: "/etc/access" };
    expect(problems({ ...access, HEADGATE_ADMIN_OPEN: "true" })).toContain("remove one of them");
    const issuer = { HEADGATE_ADMIN_OIDC_ISSUER: "https://id.example" };
    expect(problems({ ...access, ...issuer })).toContain("belong together");
    const oidc = { ...issuer, HEADGATE_ADMIN_OIDC_AUDIENCE: "headgate" };
    const jwks = { HEADGATE_ADMIN_OIDC_JWKS_URL: "http://id.example/keys" };
    expect(problems({ ...access, ...oidc, ...jwks })).toContain("must be an https URL");
    const secure = { HEADGATE_ADMIN_OIDC_JWKS_URL: "https://id.example/keys" };
    expect(problems({ ...oidc, ...secure })).toContain("needs HEADGATE_ADMIN_ACCESS");
    expect(problems({ ...access, ...oidc, ...secure })).toBe("");
    const other = { HEADGATE_ADMIN_OIDC_ISSUER: "https://id.example#a" };
    expect(problems({ ...access, ...oidc, ...secure, ...other })).toContain("without a fragment");
  });
});
