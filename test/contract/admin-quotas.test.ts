import { writeFile } from "node:fs/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { adminClients, adminProtocols, startAdminApp } from "../support/admin.js";
import { QuotaClient } from "../support/quota-client.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: edge
      descriptors:
        - {key: tenant, rate_limit: {name: pace, unit: second, requests_per_unit: 100}}
        - {key: free, rate_limit: {unlimited: true}}
    - domain: other
      descriptors: [{key: tenant, rate_limit: {unit: second, requests_per_unit: 5}}]
  quotas:
    - name: pace
      domain: edge
      match: [{name: x-plan, exact: paid}]
      bucket: [{header: x-tenant, as: tenant}]
      classes: {header: x-tier, weights: {gold: 3}}
    - {name: free, domain: edge, bucket: [{header: x-free, as: free}]}
    - {name: elsewhere, domain: other, bucket: [{header: x-tenant, as: tenant}]}
  services:
    - name: orders
      hosts: [orders.example]
      upstream: {address: 127.0.0.1, port: 80}
`;

const open = { HEADGATE_ADMIN_OPEN: "true" };

const bucket = { quota: "pace", tenant: "a" };

/** A service with one Envoy that asks for more than there is, and has its share. */
async function start() {
  const { app, port } = await startAdminApp(stage, policy, open);
  const client = new QuotaClient(app.controlAddress?.port ?? 0);
  stage.atEnd(() => client.close());
  const envoy = client.open("edge-1");
  envoy.report("edge", [
    { id: bucket },
    { id: { ...bucket, class: "gold" } },
    { id: { quota: "free", free: "x" } },
  ]);
  await waitFor("each is told", () => {
    const reported = envoy.actions.filter((one) => one.reported.endsWith(" tokens"));
    return new Set(reported.map(({ id }) => id["class"])).size === 2 ? reported : undefined;
  });
  return { port, envoy };
}

async function failure(call: Promise<unknown>): Promise<ConnectError> {
  const thrown: unknown = await call.then(
    () => new Error("it was answered"),
    (error: unknown) => error,
  );
  if (!(thrown instanceof ConnectError)) throw thrown;
  return thrown;
}

describe.each(adminProtocols)("quotas in the admin API over %s", (protocol) => {
  it("lists the quotas of the policy, and what is handed out of each, page by page", async () => {
    const { port } = await start();
    const { quotas } = adminClients(port, { protocol });
    const first = await quotas.listQuotas({ pageSize: 2 });
    expect(first.quotas).toMatchObject([
      {
        name: "pace",
        domain: "edge",
        bucketKeys: ["tenant"],
        classHeader: "x-tier",
        ttl: { seconds: 10n },
        callsShare: 0.1,
        beforeAssignment: "allow",
        poolCount: 1n,
        bucketCount: 2n,
      },
      { name: "free", poolCount: 1n, bucketCount: 1n },
    ]);
    expect(first.quotas[1]?.heldRate).toBeUndefined();
    expect(first.quotas[0]?.heldRate).toBeGreaterThan(50);
    const rest = await quotas.listQuotas({ pageSize: 2, pageToken: first.nextPageToken });
    expect(rest.quotas.map(({ name, bucketCount }) => [name, bucketCount])).toEqual([
      ["elsewhere", 0n],
    ]);
    expect(rest.nextPageToken).toBe("");
    const edge = await quotas.listQuotas({ domain: "edge" });
    expect(edge.quotas.map(({ name }) => name)).toEqual(["pace", "free"]);
  });

  it("shows a limit, its lease, and who has how much of it", async () => {
    const { port } = await start();
    const { quotas } = adminClients(port, { protocol });
    const { pools, poolCount } = await quotas.listQuotaPools({ quota: "pace" });
    expect(poolCount).toBe(1n);
    expect(pools).toMatchObject([
      {
        quotas: ["pace"],
        domain: "edge",
        entries: [{ key: "tenant", value: "a" }],
        mode: "limited",
        limits: [{ hits: 100n, period: { seconds: 1n }, burst: 100n }],
        lease: { state: "leased" },
        bucketCount: 2n,
      },
    ]);
    const shares = pools[0]?.shares ?? [];
    expect(shares.map(({ node, weight }) => [node, weight]).sort()).toEqual([
      ["edge-1", 1],
      ["edge-1", 3],
    ]);
    const rates = shares.map(({ assignment: of }) => (of.case === "tokens" ? of.value.rate : 0));
    expect(Math.min(...rates)).toBeGreaterThan(0);
    expect(rates.reduce((sum, rate) => sum + rate, 0)).toBeLessThanOrEqual(104);
    const cut = await quotas.listQuotaPools({ count: 1, sharesPerPool: 1 });
    expect([cut.pools.length, cut.poolCount]).toEqual([1, 2n]);
    expect(cut.pools[0]?.shares).toHaveLength(1);
  });

  it("suggests the nearest name of a quota that is not there", async () => {
    const { port } = await start();
    const { quotas } = adminClients(port, { protocol });
    const unknown = await failure(quotas.listQuotaPools({ quota: "pase" }));
    expect(unknown.code).toBe(Code.NotFound);
    expect(unknown.rawMessage).toBe('unknown quota; did you mean "pace"?');
    const other = await failure(quotas.listQuotaPools({ quota: "pace", domain: "other" }));
    expect(other.code).toBe(Code.NotFound);
    const wrong = await failure(quotas.listQuotaPools({ count: 101, sharesPerPool: 1_001 }));
    expect(wrong.rawMessage).toBe(
      "count: must be from 0 to 100; shares_per_pool: must be from 0 to 1000",
    );
  });
});

describe("a page token", () => {
  it("is of one policy: where that has changed between two pages, they begin again", async () => {
    const { port, policyPath } = await startAdminApp(stage, policy);
    const { quotas, limits } = adminClients(port);
    const first = await quotas.listQuotas({ pageSize: 1 });
    const rules = await limits.listRules({ pageSize: 1 });
    expect(rules.policyVersion).toBe(first.policyVersion);
    // Now another quota, and another rule, would be the second.
    const changed = policy.replace("    - name: pace\n", "    - name: swift\n");
    await writeFile(policyPath, changed);
    await waitFor("the policy is read again", async () => {
      const { policyVersion } = await quotas.listQuotas({});
      return policyVersion !== first.policyVersion;
    });
    const calls = [
      quotas.listQuotas({ pageSize: 1, pageToken: first.nextPageToken }),
      limits.listRules({ pageSize: 1, pageToken: rules.nextPageToken }),
    ];
    for (const call of calls) {
      const { code, rawMessage } = await failure(call);
      expect(code).toBe(Code.InvalidArgument);
      expect(rawMessage).toBe("page_token: the policy has changed; start again");
    }
  });
});

describe("a quota", () => {
  it("is explained with the request that it meets", async () => {
    const { port } = await start();
    const { limits } = adminClients(port);
    const http = {
      method: "GET",
      host: "orders.example",
      path: "/",
      headers: { "X-Plan": "paid", "x-tenant": "a" },
    };
    const { current } = await limits.explain({ request: { case: "http", value: http } });
    expect(current?.quotas).toMatchObject([
      {
        quota: "pace",
        condition: "",
        bucketCount: 2n,
        descriptor: {
          entries: [{ key: "tenant", value: "a" }],
          matchedLabel: "tenant",
          states: [{ limit: { name: "pace" } }],
        },
      },
      { quota: "elsewhere", bucketCount: 0n, heldRate: 0 },
    ]);
    expect(current?.quotas[0]?.heldRate).toBeGreaterThan(50);
    const headers = { "x-tenant": "a" };
    const other = await limits.explain({
      request: { case: "http", value: { ...http, headers } },
    });
    expect(other.current?.quotas.map(({ quota }) => quota)).toEqual(["elsewhere"]);
  });

  it("is explained with the descriptor that its bucket is", async () => {
    const { port } = await start();
    const { limits } = adminClients(port);
    const descriptors = [{ entries: [{ key: "tenant", value: "a" }] }];
    const value = { domain: "edge", descriptors };
    const { current } = await limits.explain({ request: { case: "descriptors", value } });
    expect(current?.quotas).toMatchObject([{ quota: "pace", bucketCount: 2n }]);
  });

  it.each([
    ["an override", { case: "amount", value: { hits: 20n, burst: 20n } }, /^\d+ tokens$/, 21],
    ["a freeze", { case: "isFrozen", value: true }, /^deny$/, 0],
  ] as const)("gives Envoys less at once by %s", async (_, effect, reported, mostHz) => {
    const { port, envoy } = await start();
    const { limits, fleet } = adminClients(port);
    const entries = [{ key: "tenant", value: "a" }];
    const override = { domain: "edge", entries, id: "less", effect, reason: "a test" };
    await limits.setOverride({ override });
    await waitFor("both buckets have less", () => {
      const last = ["gold", undefined].map((name) =>
        envoy.actions.findLast(({ id }) => id["quota"] === "pace" && id["class"] === name),
      );
      const sum = last.reduce((hz, one) => hz + (one?.hz ?? Number.NaN), 0);
      return last.every((one) => reported.test(one?.reported ?? "")) && sum <= mostHz
        ? last
        : undefined;
    });
    const { entries: audited } = await fleet.listAudit({});
    expect(audited.map(({ action }) => action)).toEqual(["SetOverride"]);
  });
});
