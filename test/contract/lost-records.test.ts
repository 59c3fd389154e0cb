import { describe, expect, it } from "vitest";
import { policyVersion } from "../../src/app/config/policy-files.js";
import { ServiceError } from "../../src/core/base/errors.js";
import {
  keptAuditMax,
  type RecordsEvent,
  ReplicatedRecords,
} from "../../src/fleet/records/replicated-records.js";
import type { SharedRecords } from "../../src/fleet/records/shared-records.js";
import { systemRandom } from "../../src/host/clock.js";
import { RedisRecords } from "../../src/store/redis/coordination/redis-records.js";
import type { StoreConnection } from "../../src/store/redis/scripts/connection.js";
import { type AdminApp, adminClients, startAdminApp } from "../support/admin.js";
import type { Env } from "../support/configured-store.js";
import { realClock } from "../support/real-clock.js";
import { startRedis, userPassword } from "../support/redis.js";
import type { RedisServer } from "../support/redis-server.js";
import { openTestStore } from "../support/redis-store.js";
import { useStage } from "../support/stage.js";
import { waitFor } from "../support/wait.js";

const stage = useStage("test");

/** A replica's records, and a switch that takes its network away. */
interface Replica {
  readonly records: SharedRecords;
  readonly restored: string[];
  /** How many entries of the audit log it put back, each time that it did. */
  readonly auditCounts: number[];
  isCutOff: boolean;
}

async function open(server: RedisServer, othersWaitMs = 0): Promise<Replica> {
  const { connections, store: limits } = await openTestStore(server);
  stage.atEnd(() => limits.close());
  const { background } = connections;
  const connection: StoreConnection = {
    run: async (call) => {
      if (replica.isCutOff) throw new ServiceError("STORE_UNAVAILABLE");
      return background.run(call);
    },
  };
  const restored: string[] = [];
  const auditCounts: number[] = [];
  const onEvent = (event: RecordsEvent): void => {
    if (event.kind === "auditRestored") auditCounts.push(event.count);
    if (event.kind !== "recordsRestored") return;
    restored.push(...event.records.map(({ id }) => `${event.recordKind} ${id}`));
  };
  const common = { clock: realClock, random: systemRandom };
  const store = new RedisRecords({ ...common, connection, keyPrefix: "" });
  const replica: Replica = {
    records: new ReplicatedRecords({ ...common, store, othersWaitMs, onEvent }),
    restored,
    auditCounts,
    isCutOff: false,
  };
  stage.atEnd(async () => replica.records.close());
  return replica;
}

/** Sets a record, or takes it away, as one who has seen the one that there is. */
async function set({ records }: Replica, id: string, value?: number): Promise<void> {
  const expectedVersion = records.list("override").get(id)?.version ?? 0;
  const change = { kind: "override", id, expectedVersion, audit: undefined } as const;
  const given = value === undefined ? undefined : { value };
  const outcome = await records.change({ ...change, value: given });
  expect(outcome).toMatchObject({ kind: "changed" });
}

function valuesOf({ records }: Replica) {
  return Object.fromEntries([...records.list("override")].map(([id, { value }]) => [id, value]));
}

async function bothHave(replicas: readonly Replica[], expected: Record<string, number>) {
  const values = Object.fromEntries(Object.entries(expected).map(([id, value]) => [id, { value }]));
  const texts = JSON.stringify(Object.entries(values).toSorted());
  await waitFor("all of them know it", () =>
    replicas.every((one) => JSON.stringify(Object.entries(valuesOf(one)).toSorted()) === texts),
  );
}

/** What somebody reads who has known nothing before. */
async function inStore(server: RedisServer): Promise<Replica> {
  const fresh = await open(server);
  await fresh.records.known();
  // It is not to be one of those that put records back.
  fresh.records.close();
  return fresh;
}

describe("a store that loses the records of operators", () => {
  it("gets them back from replicas, once, emptied or started without its data", async () => {
    const server = await startRedis(stage);
    const [one, two] = [await open(server), await open(server)];
    await set(one, "ann", 1);
    await set(one, "bob", 2);
    await set(one, "bob");
    await bothHave([two], { ann: 1 });
    await server.client().flushall();
    await waitFor("they are put back", async () => one.restored.length + two.restored.length > 0);
    await bothHave([one, two], { ann: 1 });
    await bothHave([await inStore(server)], { ann: 1 });
    await server.kill();
    await server.restart();
    await waitFor("they are put back", () => one.restored.length + two.restored.length > 1);
    await bothHave([one, two], { ann: 1 });
    await bothHave([await inStore(server)], { ann: 1 });
    expect([...one.restored, ...two.restored]).toEqual(["override ann", "override ann"]);
    await set(two, "ann", 3);
    await bothHave([one, two], { ann: 3 });
  });

  it("never gets an older one over a newer one, nor one that was taken away", async () => {
    const server = await startRedis(stage);
    const [late, one] = [await open(server), await open(server)];
    await set(one, "ann", 1);
    await set(one, "bob", 1);
    await bothHave([late], { ann: 1, bob: 1 });
    late.isCutOff = true;
    await set(one, "ann", 2);
    await set(one, "bob");
    one.isCutOff = true;
    await server.client().flushall();
    // Who knows less comes first, and somebody changes what it has put back.
    late.isCutOff = false;
    await waitFor("they are put back", () => late.restored.length === 2);
    await set(late, "eve", 1);
    one.isCutOff = false;
    await bothHave([late, one], { ann: 2, eve: 1 });
    await bothHave([await inStore(server)], { ann: 2, eve: 1 });
    expect(one.restored).toEqual(["override ann"]);
  });

  it("that went back to an earlier copy gets what was changed since", async () => {
    const server = await startRedis(stage);
    const one = await open(server);
    await set(one, "ann", 1);
    const control = server.client();
    const keys = await control.keys("*");
    const copies = await Promise.all(keys.map((key) => control.dumpBuffer(key)));
    await set(one, "ann", 2);
    await set(one, "bob", 1);
    const back = control.multi().flushall();
    for (const [index, key] of keys.entries()) back.restore(key, 0, copies[index] ?? "");
    await back.exec();
    await waitFor("they are put back", () => one.restored.length === 2);
    await bothHave([one], { ann: 2, bob: 1 });
    await bothHave([await inStore(server)], { ann: 2, bob: 1 });
  });

  it("is left to those who know by one who does not, and changed by nobody before", async () => {
    const server = await startRedis(stage);
    const [one, two] = [await open(server), await open(server)];
    await set(one, "ann", 1);
    await bothHave([two], { ann: 1 });
    one.isCutOff = true;
    await server.client().flushall();
    // Two comes to know of it by its own change.
    await set(two, "ann", 2);
    await bothHave([await inStore(server)], { ann: 2 });
    two.isCutOff = true;
    await server.client().flushall();
    const fresh = await open(server, 60_000);
    let isKnown = false;
    void fresh.records.known().then(() => {
      isKnown = true;
    });
    const asked = set(fresh, "eve", 1);
    await waitFor("it has met the store", async () => (await server.client().dbsize()) === 0);
    expect(isKnown).toBe(false);
    two.isCutOff = false;
    await asked;
    await bothHave([fresh, two], { ann: 2, eve: 1 });
  });
});

/** The audit log, the oldest first: what each entry says, and its number. */
async function logOf({ records }: Replica) {
  const entries = await records.audit(Number.POSITIVE_INFINITY, 1_000);
  return entries.toReversed().map(({ number, value }) => [number, value["text"]]);
}

describe("a store that loses the audit log", () => {
  it("gets its newest entries back from all who know some, once and in order", async () => {
    const server = await startRedis(stage);
    const [one, two] = [await open(server), await open(server)];
    await set(one, "ann", 1);
    await bothHave([two], { ann: 1 });
    await one.records.note({ text: "both know it" });
    const readsOf = (replica: Replica): Promise<unknown> => {
      return set(replica, replica === one ? "one" : "two", 1);
    };
    // Whoever has changed something has looked.
    await readsOf(two);
    two.isCutOff = true;
    await one.records.note({ text: "one knows it" });
    await readsOf(one);
    one.isCutOff = true;
    await server.client().flushall();
    two.isCutOff = false;
    await waitFor("two puts back what it knows", () => two.auditCounts.length > 0);
    await two.records.note({ text: "after the loss" });
    await readsOf(two);
    one.isCutOff = false;
    await waitFor("one puts back what it knows", () => one.auditCounts.length > 0);
    const expected = [
      [1, "both know it"],
      [2, "one knows it"],
      [3, "after the loss"],
    ];
    expect(await logOf(one)).toEqual(expected);
    expect([one.auditCounts, two.auditCounts]).toEqual([[1], [1]]);
    // Of what was numbered anew all of it is known, too.
    await Promise.all([readsOf(one), readsOf(two)]);
    await server.kill();
    await server.restart();
    await waitFor("it is put back", async () => (await logOf(two)).length === 3);
    expect(await logOf(two)).toEqual(expected);
    await one.records.note({ text: "and on" });
    expect((await logOf(one)).at(-1)).toEqual([4, "and on"]);
  });

  it("gets back at most those that replicas keep, above what an earlier copy has", async () => {
    const server = await startRedis(stage);
    const one = await open(server);
    await set(one, "ann", 1);
    await one.records.note({ text: "0" });
    const control = server.client();
    const keys = await control.keys("*");
    const copies = await Promise.all(keys.map((key) => control.dumpBuffer(key)));
    const texts = Array.from({ length: keptAuditMax + 1 }, (_, i) => String(i + 1));
    for (const text of texts) await one.records.note({ text });
    await set(one, "ann", 2);
    const back = control.multi().flushall();
    for (const [index, key] of keys.entries()) back.restore(key, 0, copies[index] ?? "");
    await back.exec();
    await waitFor("they are put back", () => one.auditCounts.length > 0);
    // Those have the numbers that they had; one is lost, and so is its number.
    const kept = texts.slice(1).map((text, i) => [i + 3, text]);
    expect(await logOf(one)).toEqual([[2, "0"], ...kept]);
  });
});

const policyText = (perDay: number): string => `domain: edge
descriptors:
  - {key: user, rate_limit: {unit: day, requests_per_unit: ${perDay}}}
`;

describe("replicas whose Redis comes back empty", () => {
  async function start(server: RedisServer, env: Env = {}): Promise<AdminApp> {
    return startAdminApp(stage, policyText(1_000), {
      ...env,
      REDIS_URL: `127.0.0.1:${server.port}`,
      HEADGATE_POLICY_SOURCE: "store",
      HEADGATE_ADMIN_OPEN: "true",
    });
  }

  const isDenied = async ({ app }: AdminApp, user: string): Promise<boolean> => {
    const descriptors = [{ entries: [{ key: "user", value: user }] }];
    const body = JSON.stringify({ domain: "edge", descriptors });
    const url = `http://127.0.0.1:${app.httpAddress?.port}/json`;
    return (await fetch(url, { method: "POST", body })).status === 429;
  };

  it("keep the policy and a freeze, say by name what was lost, and tell a new one", async () => {
    const server = await startRedis(stage);
    const [one, two] = [await start(server), await start(server)];
    const { limits, policies, fleet } = adminClients(one.port);
    const { policy: before } = await policies.getPolicy({});
    const files = [{ file: "edge.yaml", text: policyText(0) }];
    const expectedVersion = before?.version ?? "";
    await policies.applyPolicy({ files, expectedVersion, reason: "an incident" });
    const entries = [{ key: "user", value: "secret-caller" }];
    const effect = { case: "isFrozen", value: true } as const;
    const freeze = { domain: "edge", entries, id: "stop-7", effect, reason: "abuse" };
    await limits.setOverride({ override: freeze });
    await waitFor("the other has both", async () => {
      const isKnown = (await two.metric("headgate_overrides")) === 1;
      return isKnown && (await isDenied(two, "bob"));
    });
    await server.kill();
    await server.restart();
    const restored = () => [...one.events, ...two.events].filter((e) => "recordKind" in e);
    await waitFor("all is put back", () => {
      const kinds = restored().flatMap(({ event, id }) =>
        event === "recordRestored" ? [String(id)] : [],
      );
      return ["stop-7", "current"].every((id) => kinds.includes(id));
    });
    const named = restored().filter(({ event }) => event === "recordRestored");
    expect(named).toContainEqual(
      expect.objectContaining({ recordKind: "override", id: "stop-7", domain: "edge" }),
    );
    expect(named).toContainEqual(
      expect.objectContaining({ recordKind: "policy", policyVersion: policyVersion(files) }),
    );
    expect(JSON.stringify(named)).not.toContain("secret-caller");
    const fresh = await start(server);
    expect(await isDenied(fresh, "bob")).toBe(true);
    expect(await fresh.metric("headgate_overrides")).toBe(1);
    await waitFor("the audit log has it", async () => {
      const { entries } = await fleet.listAudit({});
      return entries.filter(({ action }) => action === "RestoreRecords").length >= 2;
    });
  });

  it("are joined by one that decides nothing before it knows their policy", async () => {
    const server = await startRedis(stage);
    const one = await start(server);
    const { policies } = adminClients(one.port);
    const { policy: before } = await policies.getPolicy({});
    const files = [{ file: "edge.yaml", text: policyText(0) }];
    const expectedVersion = before?.version ?? "";
    await policies.applyPolicy({ files, expectedVersion, reason: "an incident" });
    // As where the connection of decisions is back before that of the records.
    const control = server.client();
    const acl = ["acl", "setuser", "late", "on", `>${userPassword}`, "+@all"] as const;
    await control.call(...acl, "resetkeys", "~headgate:[^{]*");
    const late = await start(server, { REDIS_AUTH: `late:${userPassword}` });
    expect(late.events).toContainEqual(expect.objectContaining({ event: "storedPolicyUnknown" }));
    const key = "*3:eve*";
    expect(await isDenied(one, "eve")).toBe(true);
    const counted = await control.keys(key);
    expect(await isDenied(late, "eve")).toBe(false);
    expect(await control.keys(key)).toEqual(counted);
    await control.call(...acl, "allkeys");
    await waitFor("it knows their policy", () => isDenied(late, "eve"));
    await waitFor("it asks the store", async () => {
      await isDenied(late, "eve");
      return (await late.metric("headgate_store_circuit_open")) === 0;
    });
  });
});
