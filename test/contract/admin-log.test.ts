import { createHash } from "node:crypto";
import { openSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createLogger, type LogEvent } from "../../src/app/base/logger.js";
import { adminClients, startAdminApp } from "../support/admin.js";
import { startIdentityProvider } from "../support/identity-provider.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - {domain: shop, descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 2}}]}
    - {domain: pay, descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 2}}]}
`;

const token = "0123456789abcdef-of-ann";
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

async function start(env: Record<string, string> = {}) {
  const provider = await startIdentityProvider(stage);
  const access = join(stage.folder, "access");
  await writeFile(access, `operator shop token-sha256:${sha256(token)} ann\nreader pay group:p\n`);
  const { port, events } = await startAdminApp(stage, policy, {
    HEADGATE_ADMIN_ACCESS: access,
    HEADGATE_ADMIN_OIDC_ISSUER: "https://id.example",
    HEADGATE_ADMIN_OIDC_AUDIENCE: "headgate",
    HEADGATE_ADMIN_OIDC_JWKS_URL: provider.jwksUrl,
    ...env,
  });
  const seen = (...names: readonly string[]) => events.filter(({ event }) => names.includes(event));
  return { port, events, seen, provider };
}

/** Asks, whatever comes of it. */
const tried = (call: Promise<unknown>) => call.catch(() => undefined);

const ofUser = (domain: string, value: string) => ({ domain, entries: [{ key: "user", value }] });

describe("the log of the admin API", () => {
  it("tells who was refused what, and from where", async () => {
    const { port, seen, provider } = await start();
    const reader = adminClients(port, { token: await provider.sign({ groups: ["p"] }) });
    await tried(adminClients(port).fleet.getFleet({}));
    await tried(adminClients(port, { token: "wrong" }).limits.topKeys({}));
    await tried(reader.limits.resetKey({ key: ofUser("pay", "7"), reason: "x" }));
    await tried(adminClients(port, { token }).limits.listRules({ domain: "pay" }));
    const refused = { event: "adminCallRefused", address: "127.0.0.1" };
    const subject = "subject:https://id.example#ann";
    const [nobody, code] = [{ caller: undefined, code: "unauthenticated" }, "permission_denied"];
    expect(seen("adminCallRefused", "adminCallersShown")).toEqual([
      { ...refused, method: "GetFleet", ...nobody },
      { ...refused, method: "TopKeys", ...nobody },
      { ...refused, method: "ResetKey", caller: subject, code },
      { ...refused, method: "ListRules", caller: "ann", code },
    ]);
  });

  it("tells who looks at what callers send, and not who looks at the rest", async () => {
    const { port, seen } = await start();
    const { limits, quotas, fleet } = adminClients(port, { token });
    await limits.listRules({});
    await quotas.listQuotas({});
    await fleet.getFleet({});
    await limits.topKeys({});
    for await (const _ of limits.tailDecisions({})) break;
    await fleet.listAudit({});
    expect(seen("adminCallersShown").map(({ method, caller }) => [method, caller])).toEqual([
      ["TopKeys", "ann"],
      ["TailDecisions", "ann"],
      ["ListAudit", "ann"],
    ]);
  });

  it("holds no token, and no part of one", async () => {
    const { port, events, provider } = await start({ HEADGATE_AUDIT_LOG: "true" });
    const expired = await provider.sign({ groups: ["p"] }, { exp: "-5m" });
    const valid = await provider.sign({ groups: ["p"] });
    const tokens = [token, "guessed-0123456789-token", expired, valid];
    for (const one of tokens) {
      const { limits } = adminClients(port, { token: one });
      await tried(limits.topKeys({}));
      await tried(limits.resetKey({ key: ofUser("shop", "7"), reason: "a test" }));
      await tried(limits.listRules({ domain: "other" }));
    }
    const text = JSON.stringify(events);
    expect(text).toContain("adminCallRefused");
    expect(text).toContain("ResetKey");
    for (const one of tokens) {
      for (let at = 0; at + 8 <= one.length; at += 1) {
        const part = one.slice(at, at + 8);
        expect(text.includes(part) ? part : "").toBe("");
      }
    }
  });

  it("has a line for each entry of the audit log where that is wanted", async () => {
    const wicked = "7\u202e\u001b[2J\nroot";
    const change = async (env: Record<string, string>): Promise<readonly LogEvent[]> => {
      const { port, seen } = await start(env);
      const { limits } = adminClients(port, { token });
      await limits.resetKey({ key: ofUser("shop", wicked), reason: "a test" });
      const effect = { case: "isFrozen", value: true } as const;
      const override = { id: "o", ...ofUser("shop", "8"), effect, reason: "abuse" };
      await limits.setOverride({ override });
      await tried(limits.setOverride({ override }));
      return seen("audit");
    };
    expect(await change({})).toEqual([]);
    const entries = await change({ HEADGATE_AUDIT_LOG: "true" });
    const usual = { event: "audit", author: "ann", role: "operator", domain: "shop" };
    expect(entries).toMatchObject([
      { ...usual, action: "ResetKey", reason: "a test", outcome: "written" },
      { ...usual, action: "SetOverride", subject: "o", reason: "abuse", outcome: "written" },
      { ...usual, action: "SetOverride", outcome: "conflict" },
    ]);
    expect(entries[1]?.["after"]).toContain('"kind":"frozen"');
    const path = join(stage.folder, "log");
    const target = { fd: openSync(path, "w"), isTerminal: false };
    const logger = await createLogger({ logLevel: "info", logFormat: "json" }, target);
    for (const entry of entries) logger.info(entry, "For the audit log.");
    const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
    expect(lines).toHaveLength(entries.length);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject(entries);
    expect(lines.join()).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(JSON.parse(lines[0] ?? "")["subject"]).toBe("shop user=7\ufffd\ufffd[2J\ufffdroot");
  });
});
