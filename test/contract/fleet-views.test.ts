import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type AdminApp, type AdminClients, adminClients, startAdminApp } from "../support/admin.js";
import { startTestApp } from "../support/app.js";
import { captureCli } from "../support/cli.js";
import { startRedis } from "../support/redis.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

const policy = `
apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - domain: shop
      descriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 4}}]
    - domain: pay
      descriptors: [{key: card, rate_limit: {unit: day, requests_per_unit: 4}}]
  services:
    - {name: orders, hosts: [orders.example], admission: {maxInFlight: 10}}
`;

/** Two services whose limits follow a signal: one that is read, and one that never is. */
const signals = `    - name: lag
      hosts: [lag.example]
      admission: {maxInFlight: 10}
      concurrency: {law: signal, signal: {fixed: 7, target: 10, critical: 100}}
    - name: unread
      hosts: [unread.example]
      admission:
        maxInFlight: 10
        estimatedWait: {sigmoid: {midpoint: 28s, slope: 0.23}}
        gate: {openBelow: 0.6, closeAbove: 0.9}
      concurrency:
        law: signal
        signal:
          {http: "http://127.0.0.1:9/", target: 10, critical: 100, every: 100ms, staleAfter: 200ms}
`;

interface Fleet {
  readonly apps: readonly AdminApp[];
  readonly one: AdminClients;
  readonly redisPort: number;
}

/** Replicas that know of each other; all calls of a test but its decisions go to the first. */
async function startFleet(
  env: Readonly<Record<string, string>> = {},
  { replicaCount = 2, more = "" } = {},
): Promise<Fleet> {
  const server = await startRedis(stage);
  const settings = { REDIS_URL: `127.0.0.1:${server.port}`, ...env };
  const starting = Array.from({ length: replicaCount }, () =>
    startAdminApp(stage, policy + more, settings),
  );
  const apps = await Promise.all(starting);
  for (const app of apps) {
    const liveCount = () => app.metric("headgate_live_replicas");
    await waitFor("it knows the other", async () => (await liveCount()) === replicaCount);
  }
  return { apps, one: adminClients(apps[0]?.port ?? 0), redisPort: server.port };
}

async function ask(app: AdminApp | undefined, user: string): Promise<void> {
  const descriptors = [{ entries: [{ key: "user", value: user }] }];
  const body = JSON.stringify({ domain: "shop", descriptors });
  const url = `http://127.0.0.1:${app?.app.httpAddress?.port}/json`;
  await (await fetch(url, { method: "POST", body })).text();
}

describe("services of the fleet", () => {
  it("have one limit, the policy's gate or none, and what signals read", async () => {
    const { apps, one } = await startFleet({}, { more: signals });
    const services = await waitFor("a signal is missing", async () => {
      const { services: all } = await one.fleet.listServices({});
      const isMissing = all.flatMap(({ signals }) => signals).filter((one) => one.isMissing);
      return isMissing.length === 2 ? all : undefined;
    });
    const of = (name: string) => services.filter((one) => one.name === name);
    const orders = { concurrencyLimit: 10n, gate: "", signals: [] };
    expect(of("orders")).toMatchObject([orders, orders]);
    const read = { key: "", source: "fixed", reading: 7, isMissing: false, error: "" };
    expect(of("lag")).toMatchObject([{ signals: [read] }, { signals: [read] }]);
    const unread = { source: "http", isMissing: true, error: "SIGNAL_UNAVAILABLE" };
    expect(of("unread")).toMatchObject([
      { gate: "open", signals: [unread] },
      { gate: "open", signals: [unread] },
    ]);
    expect(of("unread")[0]?.signals[0]?.reading).toBeUndefined();
    // Who leads is called as everywhere else.
    const names = of("orders").map(({ replica }) => replica);
    for (const { port } of apps) {
      const leader = await waitFor("it knows who leads", async () => {
        const told = await adminClients(port).fleet.getFleet({});
        return (told.isLeading ? told.replica : told.leader) || undefined;
      });
      expect(names).toContain(leader);
    }
  });
});

describe("the history of the fleet", () => {
  it("is what each replica has counted, for who may see it", async () => {
    const list = join(stage.folder, "access");
    const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
    const [all, some] = ["token-of-ann-who-sees-all", "token-of-bob-who-sees-pay"];
    const lines = [`reader * token-sha256:${sha256(all)} ann`];
    await writeFile(list, [...lines, `reader pay token-sha256:${sha256(some)} bob`].join("\n"));
    const { apps } = await startFleet({ HEADGATE_ADMIN_ACCESS: list });
    const port = apps[0]?.port ?? 0;
    const { fleet } = adminClients(port, { token: all });
    const rules = [{ domain: "shop", label: "user" }];
    for (let i = 0; i < 6; i += 1) await ask(apps[1], "ann");
    const sumOf = (lists: readonly (readonly number[])[]) =>
      lists.flat().reduce((sum, one) => sum + one, 0);
    const told = await waitFor(
      "both seconds have ended",
      async () => {
        const { replicas, silentReplicas } = await fleet.getHistory({ rules });
        const hits = replicas.flatMap((one) => one.rules.map((rule) => rule.hits));
        return silentReplicas === 0 && sumOf(hits) === 6 ? replicas : undefined;
      },
      { everyMs: 300 },
    );
    expect(told.map(({ admitted, overLimit }) => [sumOf([admitted]), sumOf([overLimit])])).toEqual([
      [0, 0],
      [4, 2],
    ]);
    for (const { admitted, latencyMsP99, degraded, services } of told) {
      expect(latencyMsP99).toHaveLength(admitted.length);
      expect(degraded).toHaveLength(admitted.length);
      expect(services.map(({ name }) => name)).toEqual(["orders"]);
    }
    const [own] = told;
    const since = {
      seconds: (own?.start?.seconds ?? 0n) + BigInt((own?.admitted.length ?? 0) - 2),
    };
    const later = await fleet.getHistory({ since, thisReplica: true });
    expect(later.replicas[0]?.admitted.length).toBeLessThan(10);
    const theirs = await adminClients(port, { token: some }).fleet.getHistory({ rules });
    expect(theirs.replicas.map(({ admitted }) => sumOf([admitted]))).toEqual([0, 0]);
    expect(theirs.replicas.flatMap((one) => [...one.services, ...one.rules])).toEqual([]);
  });
});

describe("live views of one replica show the fleet", () => {
  it("rules, top, near and services, each with the replica that has seen it", async () => {
    const { apps, one } = await startFleet();
    for (let i = 0; i < 5; i += 1) await ask(apps[1], "ann");
    await ask(apps[0], "bob");
    const { rules, silentReplicas } = await one.limits.listRules({ domain: "shop" });
    expect(silentReplicas).toBe(0);
    expect(rules.map(({ label, counts }) => [label, Number(counts?.hits)])).toEqual([
      ["user", 1],
      ["user", 5],
    ]);
    expect(new Set(rules.map(({ replica }) => replica)).size).toBe(2);
    const [own, other] = rules.map(({ replica }) => replica);
    const top = await one.limits.topKeys({ domain: "shop" });
    const seen = top.keys.map(({ key, replica }) => [key?.entries[0]?.value, replica]);
    expect(seen).toEqual([
      ["ann", other],
      ["bob", own],
    ]);
    const near = await one.limits.nearLimitKeys({ domain: "shop" });
    expect(near.keys.map(({ key, replica }) => [key?.entries[0]?.value, replica])).toEqual([
      ["ann", other],
    ]);
    const { services } = await one.fleet.listServices({});
    expect(services.map(({ name, replica }) => [name, replica])).toEqual([
      ["orders", own],
      ["orders", other],
    ]);
    const alone = await one.limits.topKeys({ domain: "shop", thisReplica: true });
    expect(alone.keys.map(({ replica }) => replica)).toEqual([own]);
    const url = `http://127.0.0.1:${apps[0]?.port}`;
    const shown = await captureCli(["top", "--once"], { env: { HEADGATE_ADMIN_URL: url } });
    expect(shown.out).toContain(String(other).slice(0, 6));
  });

  it("tail shows what any replica decides, and lets go of the others at its end", async () => {
    const { apps, one } = await startFleet();
    const ending = new AbortController();
    const seen = new Map<string, string>();
    const options = { signal: ending.signal };
    const follow = async (): Promise<void> => {
      for await (const { decisions } of one.limits.tailDecisions({ sampleRatio: 1 }, options)) {
        for (const { entries, replica } of decisions) seen.set(entries[0]?.value ?? "", replica);
      }
    };
    const followed = follow().catch(() => {});
    await waitFor("both are seen", async () => {
      await ask(apps[0], "bob");
      await ask(apps[1], "ann");
      return seen.size === 2;
    });
    expect(new Set(seen.values()).size).toBe(2);
    ending.abort();
    await followed;
    for (const { metric } of apps) expect(await metric("headgate_internal_errors_total")).toBe(0);
  });

  it("shows nobody what another replica has seen in a domain that is not theirs", async () => {
    const token = "a-token-of-who-may-see-one-domain";
    const accessPath = join(stage.folder, "access.txt");
    const sha256 = createHash("sha256").update(token).digest("hex");
    await writeFile(accessPath, `reader pay token-sha256:${sha256} ann\n`);
    const { apps } = await startFleet({ HEADGATE_ADMIN_ACCESS: accessPath });
    const { limits, fleet } = adminClients(apps[0]?.port ?? 0, { token });
    await ask(apps[1], "secret");
    const { rules } = await limits.listRules({});
    expect(rules.map(({ label }) => label)).toEqual(["card", "card"]);
    expect((await limits.topKeys({})).keys).toEqual([]);
    expect(await fleet.listServices({})).toMatchObject({ services: [], silentReplicas: 0 });
  });

  it("says how many replicas are silent", async () => {
    const { one, redisPort } = await startFleet({}, { replicaCount: 1 });
    // One that is live, and has no admin API to answer by.
    const REDIS_URL = `127.0.0.1:${redisPort}`;
    await startTestApp(stage, policy, { REDIS_URL, HEADGATE_ADMIN_ADDR: "" });
    await waitFor("it is known to be silent", async () => {
      const { services, silentReplicas } = await one.fleet.listServices({});
      expect(services).toHaveLength(1);
      return silentReplicas === 1;
    });
  });
});
