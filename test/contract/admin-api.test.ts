import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { TopOrder } from "../../src/gen/headgate/admin/v1/admin_pb.js";
import { adminClients, adminProtocols, startAdminApp } from "../support/admin.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors:
        - key: user
          rate_limit: {unit: minute, requests_per_unit: 2, name: perUser, overrideMax: 5}
        - key: plan
          value: free
          rate_limit: {unit: hour, requests_per_unit: 100}
    - domain: search
      descriptors:
        - key: tenant
          rate_limit: {unit: second, requests_per_unit: 10}
  services:
    - name: orders
      hosts: [orders.example]
      rateLimit:
        domain: shop
        descriptors:
          - [{header: x-user, as: user}]
      admission:
        maxInFlight: 10
        queue: {size: 20}
        estimatedWait: {sigmoid: {midpoint: 1s, slope: 5}}
        gate: {}
`;

const open = { HEADGATE_ADMIN_OPEN: "true" };

const user = (value: string) => ({ domain: "shop", entries: [{ key: "user", value }] });

async function failure(call: Promise<unknown>): Promise<ConnectError> {
  const thrown: unknown = await call.then(
    () => new Error("it was answered"),
    (error: unknown) => error,
  );
  if (!(thrown instanceof ConnectError)) throw thrown;
  return thrown;
}

/** Asks for a user as Envoy would, and answers whether the call passes. */
async function ask(httpPort: number | undefined, value: string): Promise<boolean> {
  const body = JSON.stringify({
    domain: "shop",
    descriptors: [{ entries: [{ key: "user", value }] }],
  });
  const { status } = await fetch(`http://127.0.0.1:${httpPort}/json`, { method: "POST", body });
  return status === 200;
}

describe.each(adminProtocols)("the admin API over %s", (protocol) => {
  it("lists rules, page by page", async () => {
    const { port } = await startAdminApp(stage, policy);
    const { limits } = adminClients(port, { protocol });
    const first = await limits.listRules({ pageSize: 2 });
    expect(first.rules.map(({ label }) => label)).toEqual(["user", "plan_free"]);
    expect(first.rules[0]?.limits[0]).toMatchObject({ name: "perUser", hits: 2n, burst: 2n });
    const second = await limits.listRules({ pageSize: 2, pageToken: first.nextPageToken });
    expect(second.rules.map(({ domain }) => domain)).toEqual(["search"]);
    expect(second.nextPageToken).toBe("");
  });

  it("lets a key that it has emptied pass at once, although it was just refused", async () => {
    const { app, port } = await startAdminApp(stage, policy, open);
    const { limits } = adminClients(port, { protocol });
    for (let i = 0; i < 5; i += 1) {
      const passed: boolean[] = [];
      for (let call = 0; call < 4; call += 1) passed.push(await ask(app.httpAddress?.port, "9"));
      expect(passed).toEqual([true, true, false, false]);
      await limits.resetKey({ key: user("9"), reason: "a fresh start" });
    }
  });

  it("shows, freezes and empties a key, and writes all of it down", async () => {
    const { app, port } = await startAdminApp(stage, policy, open);
    const { limits, fleet } = adminClients(port, { protocol });
    expect(await ask(app.httpAddress?.port, "7")).toBe(true);
    const { states } = await limits.getKey({ key: user("7") });
    expect(states).toMatchObject([{ ruleLabel: "user", remainingHits: 1n }]);
    expect(states[0]?.usedHits).toBeCloseTo(1, 1);
    const override = {
      ...user("7"),
      id: "stop-7",
      effect: { case: "isFrozen", value: true } as const,
      reason: "abuse",
    };
    const set = await limits.setOverride({ override });
    expect(set.override).toMatchObject({ id: "stop-7", author: "local", version: 1n });
    expect(await ask(app.httpAddress?.port, "7")).toBe(false);
    expect(await ask(app.httpAddress?.port, "8")).toBe(true);
    const listed = await limits.listOverrides({
      domain: "shop",
      beginsWith: user("7").entries,
      ruleLabel: "user",
      frozenOnly: true,
    });
    expect(listed.overrides).toMatchObject([{ id: "stop-7" }]);
    const others = await limits.listOverrides({ beginsWith: user("8").entries });
    expect(others.overrides).toEqual([]);
    await limits.deleteOverride({
      id: "stop-7",
      domain: "shop",
      expectedVersion: 1n,
      reason: "it was a test",
    });
    const reset = await limits.resetKey({ key: user("7"), reason: "a fresh start" });
    expect(reset.resetCount).toBe(1);
    expect(await ask(app.httpAddress?.port, "7")).toBe(true);
    const { entries } = await fleet.listAudit({});
    expect(entries.map(({ action, subject, reason }) => [action, subject, reason])).toEqual([
      ["ResetKey", "shop user=7", "a fresh start"],
      ["DeleteOverride", "stop-7", "it was a test"],
      ["SetOverride", "stop-7", "abuse"],
    ]);
    expect(entries[2]).toMatchObject({
      author: "local",
      role: "operator",
      domain: "shop",
      before: "",
    });
    expect(JSON.parse(entries[2]?.after ?? "")).toMatchObject({ effect: { kind: "frozen" } });
    const page = await fleet.listAudit({ pageSize: 1, action: "SetOverride" });
    expect(page.entries).toHaveLength(1);
  });

  it("says of a reset that it leaves limits that requests carry", async () => {
    const { app, port } = await startAdminApp(stage, policy, open);
    const { limits } = adminClients(port, { protocol });
    const reset = (value: string) => limits.resetKey({ key: user(value), reason: "a test" });
    expect((await reset("7")).carriedLimitsLeft).toBe(false);
    const limit = { requestsPerUnit: 2, unit: "DAY" };
    const body = JSON.stringify({
      domain: "shop",
      descriptors: [{ entries: [{ key: "job", value: "7" }], limit }],
    });
    const url = `http://127.0.0.1:${app.httpAddress?.port}/json`;
    expect((await fetch(url, { method: "POST", body })).status).toBe(200);
    expect((await reset("7")).carriedLimitsLeft).toBe(true);
    const key = { domain: "shop", entries: [{ key: "job", value: "7" }] };
    const unmet = await failure(limits.resetKey({ key, reason: "a test" }));
    expect(unmet.rawMessage).toContain("limits that requests carry cannot be read or reset");
  });

  it("suggests the key, and the domain, that may have been meant", async () => {
    const { port } = await startAdminApp(stage, policy, open);
    const { limits } = adminClients(port, { protocol });
    const entries = [{ key: "usr", value: "7" }];
    const unmet = await failure(limits.getKey({ key: { domain: "shop", entries } }));
    expect([unmet.code, unmet.rawMessage]).toEqual([
      Code.NotFound,
      'no rule with a limit matches this descriptor; did you mean the key "user"?',
    ]);
    const value = { domain: "shpo", descriptors: [{ entries }] };
    const { current } = await limits.explain({ request: { case: "descriptors", value } });
    expect(current).toMatchObject({ isDomainKnown: false, nearestDomain: "shop" });
  });

  it("explains a request, by descriptors and by its service", async () => {
    const { port } = await startAdminApp(stage, policy);
    const { limits } = adminClients(port, { protocol });
    const { current } = await limits.explain({
      request: {
        case: "descriptors",
        value: { domain: "shop", descriptors: [{ entries: [{ key: "plan", value: "gold" }] }] },
      },
    });
    expect(current).toMatchObject({ isDenied: false, isDomainKnown: true });
    expect(current?.descriptors[0]?.tried[0]).toMatchObject({
      label: "plan_free",
      isMatch: false,
      why: '"plan" does not have the value "free"',
    });
    const http = { host: "orders.example", path: "/", headers: { "X-User": "7" } };
    const candidate = [
      { file: "new.yaml", text: policy.replace("requests_per_unit: 2", "requests_per_unit: 0") },
    ];
    const both = await limits.explain({ request: { case: "http", value: http }, candidate });
    expect(both.current).toMatchObject({ isDenied: false, service: "orders" });
    expect(both.candidate).toMatchObject({ isDenied: true, service: "orders" });
    const bad = await failure(
      limits.explain({
        request: { case: "http", value: http },
        candidate: [{ file: "new.yaml", text: "kind: Policy" }],
      }),
    );
    expect(bad.code).toBe(Code.InvalidArgument);
    expect(bad.rawMessage).toContain("candidate: new.yaml:1");
  });

  it("takes one call with a policy after another", async () => {
    const { port } = await startAdminApp(stage, policy);
    const { limits } = adminClients(port, { protocol });
    for (let i = 0; i < 10; i += 1) {
      expect((await failure(limits.explain({}))).code).toBe(Code.InvalidArgument);
    }
  });

  it("streams decisions until the reader goes", async () => {
    const { app, port } = await startAdminApp(stage, policy);
    const { limits } = adminClients(port, { protocol });
    const end = new AbortController();
    const request = { domain: "shop", sampleRatio: 1, perSecondMax: 1_000 };
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { decisions } of limits.tailDecisions(request, { signal: end.signal })) {
        for (const { entries } of decisions) seen.push(entries[0]?.value ?? "");
      }
    })().catch((error: unknown) => error);
    await waitFor("a decision is seen", async () => {
      await ask(app.httpAddress?.port, "7");
      return seen.includes("7");
    });
    end.abort();
    expect(await reading).toMatchObject({ code: Code.Canceled });
  });

  it("says where a request is wrong, and what comes nearest", async () => {
    const { port } = await startAdminApp(stage, policy, open);
    const { limits, fleet } = adminClients(port, { protocol });
    const unknown = await failure(limits.getKey({ key: { ...user("7"), domain: "shpo" } }));
    expect([unknown.code, unknown.rawMessage]).toEqual([
      Code.NotFound,
      'unknown domain; did you mean "shop"?',
    ]);
    const wrong = await failure(
      limits.setOverride({ override: { ...user("7"), effect: { case: "multiplier", value: -1 } } }),
    );
    expect(wrong.code).toBe(Code.InvalidArgument);
    expect(wrong.rawMessage).toContain("override.multiplier: must be above 0");
    expect(wrong.rawMessage).toContain("override.reason: required");
    const tooMuch = {
      ...user("7"),
      reason: "vip",
      effect: { case: "multiplier", value: 6 } as const,
    };
    const refused = await failure(limits.setOverride({ override: tooMuch }));
    expect(refused.rawMessage).toContain('more than 5 times the limit of rule "user"');
    const stale = await failure(
      limits.setOverride({
        override: { ...tooMuch, effect: { case: "multiplier", value: 5 } },
        expectedVersion: 3n,
      }),
    );
    expect(stale.code).toBe(Code.Aborted);
    const gate = await failure(
      fleet.setGateThresholds({ service: "orders", openBelow: 0.8, closeAbove: 0.5, reason: "x" }),
    );
    expect(gate.code).toBe(Code.InvalidArgument);
    expect((await failure(fleet.getGateThresholds({ service: "order" }))).code).toBe(Code.NotFound);
  });

  it("tells of services, gates, the policy, and the busiest keys", async () => {
    const { app, port } = await startAdminApp(stage, policy, open);
    const { limits, policies, fleet } = adminClients(port, { protocol });
    const reported = await fleet.getFleet({});
    expect(reported).toMatchObject({ store: "memory", isDegraded: false, replicaCount: 1 });
    expect(reported.services).toMatchObject([{ name: "orders", law: "none", gate: "open" }]);
    const set = await fleet.setGateThresholds({
      service: "orders",
      openBelow: 0.1,
      closeAbove: 0.2,
      reason: "a long queue",
    });
    expect(set.thresholds).toMatchObject({ openBelow: 0.1, closeAbove: 0.2, isOverridden: true });
    const { thresholds } = await fleet.getGateThresholds({ service: "orders" });
    expect(thresholds).toMatchObject({ closeAbove: 0.2, version: 1n });
    expect((await policies.getPolicy({})).policy?.source).toBe("files");
    const { problems } = await policies.validatePolicy({ files: [{ file: "a.yaml", text: "x" }] });
    expect(problems[0]).toMatchObject({ file: "a.yaml", line: 1 });
    const apply = await failure(
      policies.applyPolicy({ files: [{ file: "a.yaml", text: policy }], reason: "try" }),
    );
    expect(apply.code).toBe(Code.FailedPrecondition);
    for (let i = 0; i < 4; i += 1) await ask(app.httpAddress?.port, "7");
    const near = await limits.nearLimitKeys({ domain: "shop" });
    expect(near.keys).toMatchObject([{ ruleLabel: "user", isOver: true }]);
    await waitFor("the key is seen", async () => {
      await ask(app.httpAddress?.port, "7");
      const top = await limits.topKeys({ order: TopOrder.HITS });
      return top.keys[0]?.key?.entries[0]?.value === "7";
    });
  });
});
