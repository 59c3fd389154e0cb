import { afterEach, describe, expect, it } from "vitest";
import { type LogEvent, silentLogger } from "../../src/app/base/logger.js";
import { policyVersion } from "../../src/app/config/policy-files.js";
import { GateAdmin } from "../../src/app/operator/gate-admin.js";
import { PolicyAdmin } from "../../src/app/operator/policy-admin.js";
import { reviewsWaitingMax } from "../../src/app/operator/policy-admin-review.js";
import { ActivePolicy } from "../../src/app/policy/active-policy.js";
import {
  followStore,
  type OpenPolicies,
  type PolicyOrigin,
} from "../../src/app/policy/policies.js";
import {
  currentId,
  policiesKeptMax,
  policyRecordBytesMax,
  versionId,
} from "../../src/app/policy/policy-admin-records.js";
import { readAuditEntry } from "../../src/core/base/audit-entry.js";
import { toServiceError } from "../../src/core/base/errors.js";
import type { JsonObject } from "../../src/core/base/json.js";
import { GateRegistry } from "../../src/fleet/records/gate-registry.js";
import { ReplicatedRecords } from "../../src/fleet/records/replicated-records.js";
import type { SharedRecords } from "../../src/fleet/records/shared-records.js";
import { systemRandom } from "../../src/host/clock.js";
import type { PolicyChangeOutcome } from "../../src/rpc/admin/admin-parts.js";
import { RedisRecords } from "../../src/store/redis/coordination/redis-records.js";
import { memoryRecords } from "../support/memory-records.js";
import { parseHere as parser } from "../support/parse-here.js";
import { realClock } from "../support/real-clock.js";
import { shareTestStore } from "../support/redis-store.js";
import { gatePolicyText } from "../support/service-texts.js";
import { waitFor } from "../support/wait.js";

const actor = { name: "ann", role: "operator" } as const;

function files(hits: number) {
  const text = `domain: shop
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: ${hits}}
`;
  return [{ file: "shop.yaml", text }];
}

const gateFiles = [{ file: "gate.yaml", text: gatePolicyText }];

const versionOf = (hits: number): string => policyVersion(files(hits));

/** A process, as far as policies go. */
interface Replica {
  readonly policies: OpenPolicies;
  readonly admin: PolicyAdmin;
  readonly gates: GateRegistry;
  readonly gateAdmin: GateAdmin;
  readonly records: SharedRecords;
  readonly events: LogEvent[];
}

const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** Opens one that begins with a limit of 10, unless other files are said. */
async function openReplica(
  records: SharedRecords,
  given: { readonly origin?: PolicyOrigin; readonly first?: typeof gateFiles } = {},
): Promise<Replica> {
  const { origin = "store", first = files(10) } = given;
  const events: LogEvent[] = [];
  const note = (event: LogEvent): void => {
    events.push(event);
  };
  const logger = { ...silentLogger, info: note, warn: note, error: note };
  const feed = new ActivePolicy({ clock: realClock, logger });
  const input = { kind: "texts", sources: first } as const;
  const version = policyVersion(first);
  feed.take(await parser({ input, version, clock: realClock }));
  const nothing = (): void => {};
  const open = { feed, origin, texts: () => first, parse: {}, watch: nothing, close: nothing };
  const policies = await followStore(open, { records, clock: realClock, logger, parser });
  const gates = new GateRegistry(records);
  closing.push(
    () => policies.close(),
    () => gates.close(),
    () => records.close(),
  );
  const parts = { policies, records, clock: realClock, random: systemRandom, replica: "r1" };
  const shadow = { report: () => undefined, refresh: async () => {} };
  const admin = new PolicyAdmin({ ...parts, parser, shadow });
  const gateAdmin = new GateAdmin({ ...parts, gates, policies: policies.feed, rooms: undefined });
  return { policies, admin, gates, gateAdmin, records, events };
}

function apply(
  { admin }: Replica,
  hits: number,
  fields: { expected?: number; isShadow?: boolean; isDryRun?: boolean } = {},
): Promise<PolicyChangeOutcome> {
  const { expected = 10, isShadow = false, isDryRun = false } = fields;
  const expectedVersion = versionOf(expected);
  const asked = { actor, reason: "a test", expectedVersion, isShadow, isDryRun };
  return admin.apply(files(hits), asked);
}

function ask(expected: number) {
  return { actor, reason: "a test", expectedVersion: versionOf(expected) };
}

function active({ policies }: Replica): string | undefined {
  return policies.feed.current()?.version;
}

function describeApplying(open: () => SharedRecords): void {
  it("puts what is applied in force, and keeps what was", async () => {
    const one = await openReplica(open());
    expect(one.admin.current()).toMatchObject({ version: versionOf(10), source: "files" });
    const change = await apply(one, 20);
    expect(change).toMatchObject({ kind: "changed", policy: { version: versionOf(20) } });
    expect(active(one)).toBe(versionOf(20));
    expect(one.admin.current()).toMatchObject({
      version: versionOf(20),
      author: "ann",
      reason: "a test",
      source: "admin",
      files: files(20),
    });
    const history = one.admin.history().map(({ version, source }) => [version, source]);
    expect(history).toEqual([
      [versionOf(20), "admin"],
      [versionOf(10), "files"],
    ]);
    expect(one.admin.find(versionOf(10))?.files).toEqual(files(10));
    const [entry] = await one.records.audit(Number.POSITIVE_INFINITY, 1);
    expect(readAuditEntry(entry?.value ?? {})).toMatchObject({
      author: "ann",
      action: "ApplyPolicy",
      subject: "policy",
      reason: "a test",
      replica: "r1",
    });
  });

  it("goes back to the one before, and to any that is kept", async () => {
    const one = await openReplica(open());
    await apply(one, 20);
    await apply(one, 30, { expected: 20 });
    const back = await one.admin.rollBack(undefined, ask(30));
    expect(back).toMatchObject({ kind: "changed", policy: { version: versionOf(20) } });
    expect(active(one)).toBe(versionOf(20));
    await one.admin.rollBack(versionOf(10), ask(20));
    expect(active(one)).toBe(versionOf(10));
    const unknown = await one.admin.rollBack("0123456789ab", ask(10));
    expect(unknown).toEqual({ kind: "unknown", versions: [versionOf(20), versionOf(30)] });
  });

  it("goes two back when it goes back twice, and on from there", async () => {
    const one = await openReplica(open());
    await apply(one, 20);
    await apply(one, 30, { expected: 20 });
    const back = async (from: number): Promise<string | undefined> => {
      const change = await one.admin.rollBack(undefined, ask(from));
      return change.kind === "refused" ? change.why : active(one);
    };
    expect(await back(30)).toBe(versionOf(20));
    expect(await back(20)).toBe(versionOf(10));
    expect(await back(10)).toBe("There is no earlier policy.");
    await one.admin.rollBack(versionOf(30), ask(10));
    expect(await back(30)).toBe(versionOf(20));
    // What is applied again is no step back, although it was there before.
    await apply(one, 30, { expected: 20 });
    expect(await back(30)).toBe(versionOf(20));
  });
}

function describeRefusals(open: () => SharedRecords): void {
  it("says all that is wrong, where it is, and puts nothing in force", async () => {
    const one = await openReplica(open());
    const limit = "{unit: minut, requests_per_unit: x}";
    const text = `domain: shop\ndescriptors:\n  - key: user\n    rate_limit: ${limit}\n`;
    const expectedVersion = versionOf(10);
    const asked = { actor, reason: "", expectedVersion, isShadow: false, isDryRun: false };
    const change = await one.admin.apply([{ file: "shop.yaml", text }], asked);
    if (change.kind !== "problems") throw new Error(`it is ${change.kind}`);
    const [problem] = change.problems;
    expect(problem).toMatchObject({ file: "shop.yaml", line: 4 });
    expect(change.problems.length).toBeGreaterThan(1);
    expect(active(one)).toBe(versionOf(10));
    expect(await one.records.audit(Number.POSITIVE_INFINITY, 1)).toEqual([]);
  });

  it("says what a dry run would change, and changes nothing", async () => {
    const one = await openReplica(open());
    const change = await apply(one, 20, { isDryRun: true });
    expect(change).toMatchObject({ kind: "changed", policy: undefined });
    if (change.kind === "changed") expect(change.changes).not.toEqual([]);
    expect(active(one)).toBe(versionOf(10));
    expect(one.records.list("policy").size).toBe(0);
    expect((await one.admin.review(files(20))).changes).not.toEqual([]);
    expect((await one.admin.review(files(10))).changes).toEqual([]);
  });

  it("refuses who has seen another version", async () => {
    const one = await openReplica(open());
    await apply(one, 20);
    const conflict = { kind: "conflict", version: versionOf(20) };
    expect(await apply(one, 30)).toEqual(conflict);
    expect(await apply(one, 30, { isShadow: true })).toEqual(conflict);
    expect(await one.admin.rollBack(undefined, ask(10))).toEqual(conflict);
    expect(active(one)).toBe(versionOf(20));
  });
}

function enforce(one: Replica, shadowVersion = "") {
  return one.admin.enforce({ ...ask(10), shadowVersion });
}

function describeKeeping(open: () => SharedRecords): void {
  it("refuses to apply where files say what holds, and shadows there", async () => {
    const one = await openReplica(open(), { origin: "files" });
    const change = await apply(one, 20);
    if (change.kind !== "refused") throw new Error(`it is ${change.kind}`);
    expect(change.why).toMatch(/comes from its files.*HEADGATE_POLICY_SOURCE=store/);
    expect(await apply(one, 20, { isShadow: true })).toMatchObject({ kind: "changed" });
    expect(one.admin.shadow()).toMatchObject({ version: versionOf(20), files: files(20) });
    expect(await enforce(one)).toMatchObject({ kind: "refused" });
    expect(await one.admin.rollBack(undefined, ask(10))).toMatchObject({ kind: "changed" });
    expect(one.admin.shadow()).toBeUndefined();
    expect(await one.admin.rollBack(undefined, ask(10))).toMatchObject({ kind: "refused" });
  });

  it("enforces what ran beside, which is beside no more", async () => {
    const one = await openReplica(open());
    expect(await enforce(one)).toMatchObject({ kind: "refused" });
    await apply(one, 20, { isShadow: true });
    expect(active(one)).toBe(versionOf(10));
    // Somebody else has put another one in its place.
    const another = await enforce(one, versionOf(30));
    expect(another).toEqual({ kind: "conflict", version: versionOf(20) });
    expect(active(one)).toBe(versionOf(10));
    expect(await enforce(one, versionOf(20))).toMatchObject({ kind: "changed" });
    expect(active(one)).toBe(versionOf(20));
    expect(one.admin.shadow()).toBeUndefined();
  });

  it("keeps so many policies, the newest", async () => {
    const one = await openReplica(open());
    const numbers = Array.from({ length: policiesKeptMax }, (_, i) => policiesKeptMax - i);
    const add = (id: string, value: JsonObject) =>
      one.records.change({ kind: "policy", id, value, expectedVersion: 0, audit: undefined });
    for (const number of numbers) {
      const [file = { file: "", text: "" }] = files(20 + number);
      const facts = { author: "", reason: "", source: "admin", appliedEpochMs: 0 };
      const version = versionOf(20 + number);
      await add(versionId(number), { ...facts, version, files: [[file.file, file.text]] });
    }
    await add(currentId, { numbers });
    await one.policies.refresh?.();
    await apply(one, 11, { expected: 20 + policiesKeptMax });
    const history = one.admin.history();
    expect(history).toHaveLength(policiesKeptMax);
    expect(history[0]?.version).toBe(versionOf(11));
    expect(one.records.list("policy").size).toBe(policiesKeptMax + 1);
    expect(one.admin.find(versionOf(21))).toBeUndefined();
    expect(one.admin.find(versionOf(22))).toBeDefined();
  });

  it("takes away what somebody left behind who came too late, and nothing else", async () => {
    const one = await openReplica(open());
    await apply(one, 20);
    const [left] = [...one.records.list("policy").values()];
    const value = left?.value ?? {};
    const change = { kind: "policy", expectedVersion: 0, audit: undefined } as const;
    await one.records.change({ ...change, id: versionId(3), value });
    await apply(one, 30, { expected: 20 });
    const ids = [...one.records.list("policy").keys()];
    expect(ids.toSorted()).toEqual([currentId, versionId(1), versionId(2), versionId(4)]);
  });
}

function describeBounds(open: () => SharedRecords): void {
  it("refuses a policy that no record holds", async () => {
    const one = await openReplica(open());
    const [first] = files(20);
    const text = `${first?.text}# ${"x".repeat(policyRecordBytesMax / 2)}\n`;
    const other = { file: "other.yaml", text: text.replace("shop", "other") };
    const asked = { actor, reason: "", expectedVersion: versionOf(10), isShadow: false };
    const change = await one.admin.apply([{ file: "shop.yaml", text }, other], {
      ...asked,
      isDryRun: false,
    });
    expect(change).toMatchObject({ kind: "refused" });
  });

  it("reads few policies at a time, and refuses more", async () => {
    const one = await openReplica(open());
    const asked = Array.from({ length: reviewsWaitingMax + 1 }, () => one.admin.review(files(20)));
    const codes = await Promise.all(asked.map((own) => own.then(() => "", codeOf)));
    expect(codes.filter((code) => code === "OVERLOADED")).toHaveLength(1);
    expect((await one.admin.review(files(10))).changes).toEqual([]);
  });
}

function codeOf(thrown: unknown): string {
  return toServiceError(thrown).code;
}

function describeGates(open: () => SharedRecords): void {
  it("changes where a gate opens and closes, and back", async () => {
    const { gateAdmin, gates } = await openReplica(open(), { first: gateFiles });
    expect(gateAdmin.services(() => true)).toEqual(["orders"]);
    const own = { service: "orders", openBelowRatio: 0.4, closeAboveRatio: 0.8 };
    expect(gateAdmin.get("orders")).toEqual({ ...own, isOverridden: false, version: 0 });
    expect(gateAdmin.get("other")).toBeUndefined();
    const request = { actor, reason: "a test", expectedVersion: 0 };
    const wrong = { openBelowRatio: 0.8, closeAboveRatio: 0.8 };
    expect(await gateAdmin.set("orders", wrong, request)).toMatchObject({ kind: "refused" });
    const ratios = { openBelowRatio: 0.2, closeAboveRatio: 0.5 };
    const set = await gateAdmin.set("orders", ratios, request);
    const version = gates.find("orders")?.version ?? 0;
    const thresholds = { service: "orders", ...ratios, isOverridden: true, version };
    expect(set).toEqual({ kind: "changed", thresholds });
    const settings = { openBelowRatio: 0.4, closeAboveRatio: 0.8, passAtCloseRatio: 0.1 };
    expect(gates.settingsOf("orders", settings)).toEqual({ ...settings, ...ratios });
    expect(await gateAdmin.set("orders", ratios, request)).toEqual({
      kind: "conflict",
      version,
    });
    const asked = { ...request, expectedVersion: version };
    const clear = await gateAdmin.set("orders", undefined, asked);
    expect(clear).toEqual({
      kind: "changed",
      thresholds: { ...own, isOverridden: false, version: 0 },
    });
    expect(await gateAdmin.set("orders", undefined, request)).toMatchObject({ kind: "changed" });
  });
}

function describePolicies(open: () => SharedRecords): void {
  describeApplying(open);
  describeRefusals(open);
  describeKeeping(open);
  describeBounds(open);
  describeGates(open);
}

describe("PolicyAdmin, alone", () => {
  describePolicies(() => memoryRecords(realClock));
});

describe("PolicyAdmin, over Redis", () => {
  const shared = shareTestStore("redis");
  let keyPrefix = "";
  let count = 0;
  const open = (): SharedRecords => {
    const { background: connection } = shared.opened.connections;
    const common = { clock: realClock, random: systemRandom };
    const store = new RedisRecords({ ...common, connection, keyPrefix });
    return new ReplicatedRecords({ ...common, store, othersWaitMs: 0 });
  };
  const openFresh = (): SharedRecords => {
    count += 1;
    keyPrefix = `policies${count}:`;
    return open();
  };

  describePolicies(openFresh);

  it("puts what one replica was told in force on the other within a second", async () => {
    const one = await openReplica(openFresh());
    const other = await openReplica(open());
    await apply(one, 20);
    const start = performance.now();
    await waitFor("it is active", () => active(other) === versionOf(20));
    // Ten times what is promised: other tests share the machine.
    expect(performance.now() - start).toBeLessThan(10_000);
    await apply(one, 30, { expected: 20, isShadow: true });
    await waitFor("it is shadowed", () => other.admin.shadow()?.version === versionOf(30));
  });

  it("lets one of two who change at a time succeed", async () => {
    const one = await openReplica(openFresh());
    const other = await openReplica(open());
    const kinds = (await Promise.all([apply(one, 20), apply(other, 30)])).map(({ kind }) => kind);
    expect(kinds.toSorted()).toEqual(["changed", "conflict"]);
    await waitFor("both agree", () => active(one) === active(other));
    expect([versionOf(20), versionOf(30)]).toContain(active(one));
    expect(one.admin.history()).toHaveLength(2);
  });

  it("begins with what is in the store, and not with its files", async () => {
    await apply(await openReplica(openFresh()), 20);
    const next = await openReplica(open(), { first: files(99) });
    expect(active(next)).toBe(versionOf(20));
    expect(next.admin.current()?.author).toBe("ann");
  });

  it("puts a policy back that is gone from the store when it is applied again", async () => {
    const one = await openReplica(openFresh());
    await apply(one, 20);
    // Not as an outage, which replicas see and mend: as somebody deletes these keys by hand.
    const gone = { kind: "policy", value: undefined, audit: undefined } as const;
    for (const { id, version } of [...one.records.list("policy").values()]) {
      await one.records.change({ ...gone, id, expectedVersion: version });
    }
    await waitFor("it says so", () => one.policies.feed.status.lastProblem !== undefined);
    expect(await apply(one, 20, { expected: 20 })).toMatchObject({ kind: "changed" });
    expect(one.policies.feed.status.lastProblem).toBeUndefined();
    expect(active(await openReplica(open(), { first: files(99) }))).toBe(versionOf(20));
  });

  it("keeps the last policy while the store's is wrong, says so, and takes the next", async () => {
    const one = await openReplica(openFresh());
    await apply(one, 20);
    const current = one.records.list("policy").get(currentId);
    const put = async (id: string, value: Record<string, never> | object, expected: number) => {
      const change = { kind: "policy", id, expectedVersion: expected, audit: undefined } as const;
      return one.records.change({ ...change, value: { ...value } });
    };
    const wrong = { author: "", reason: "", source: "admin", appliedEpochMs: 0 };
    const text = "domain: shop\ndescriptors: 7\n";
    const version = policyVersion([{ file: "a.yaml", text }]);
    await put(versionId(77), { ...wrong, version, files: [["a.yaml", text]] }, 0);
    await put(currentId, { numbers: [77, 2, 1] }, current?.version ?? 0);
    await waitFor("it is refused", () => one.policies.feed.status.refusedCount === 1);
    expect(one.policies.feed.status.lastProblem).toMatch(/^a\.yaml:2:/);
    expect(active(one)).toBe(versionOf(20));
    expect(one.events.map(({ event }) => event)).toContain("policyRefused");
    expect(await apply(one, 30, { expected: 20 })).toMatchObject({ kind: "changed" });
    expect(active(one)).toBe(versionOf(30));
    expect(one.policies.feed.status.lastProblem).toBeUndefined();
    await put(currentId, { what: 1 }, one.records.list("policy").get(currentId)?.version ?? 0);
    await waitFor("it is refused", () => one.policies.feed.status.refusedCount === 2);
    expect(active(one)).toBe(versionOf(30));
  });
});
